//! Between what starts the job and what doesn't.

/// The least number above `from` and up to `most` that starts, and of which the one before doesn't; `None` when not even the
/// most does. `guess` is tried first: where the limit is known the rest needn't be looked for.
pub(super) fn least(from: u64, most: u64, guess: Option<u64>, mut starts: impl FnMut(u64) -> bool) -> Option<u64> {
    if from >= most {
        return None;
    }
    let (mut no, mut yes) = (from, None);
    if let Some(guess) = guess.filter(|guess| from < *guess && *guess <= most) {
        if starts(guess) {
            yes = Some(guess);
            if guess - 1 > no {
                if starts(guess - 1) { yes = Some(guess - 1) } else { no = guess - 1 }
            }
        } else {
            no = guess;
        }
    }
    let mut yes = match yes {
        Some(yes) => yes,
        None if starts(most) => most,
        None => return None,
    };
    while yes - no > 1 {
        let middle = no + (yes - no) / 2;
        if starts(middle) { yes = middle } else { no = middle }
    }
    Some(yes)
}

/// The same where the effect of small numbers often isn't monotone: the first few are tried one by one.
pub(super) fn least_near(from: u64, most: u64, mut starts: impl FnMut(u64) -> bool) -> Option<u64> {
    let near = most.min(from.saturating_add(NEAR));
    (from.saturating_add(1)..=near).find(|number| starts(*number)).or_else(|| least(near, most, None, starts))
}

/// How many.
const NEAR: u64 = 8;

/// The greatest number below `from` and down to `fewest` that starts, and of which the next one doesn't.
pub(super) fn most(from: u64, fewest: u64, guess: Option<u64>, mut starts: impl FnMut(u64) -> bool) -> Option<u64> {
    let top = from.checked_sub(fewest)?;
    let guess = guess.and_then(|guess| from.checked_sub(guess));
    least(0, top, guess, |less| starts(from - less)).map(|less| from - less)
}

/// The members of a set that starts the job without those that aren't needed: none of those that are left could be left out,
/// where no more than so many tries are needed to know it. Whole parts are left out first, then smaller ones, then one by one.
pub(super) fn needed<T: Copy>(mut set: Vec<T>, mut tries: usize, mut starts: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let (mut part, mut at, mut is_known) = (set.len().div_ceil(4).max(1), 0, true);
    while tries > 0 && set.len() > 1 {
        if at >= set.len() {
            if part == 1 && is_known {
                break;
            }
            // Without one of them another one may be needless that was needed: then all are asked once more.
            (part, at, is_known) = (part.div_ceil(4), 0, true);
        }
        let end = set.len().min(at + part);
        let mut fewer = set.clone();
        fewer.drain(at..end);
        tries -= 1;
        if !fewer.is_empty() && starts(&fewer) {
            (set, is_known) = (fewer, at == 0 && is_known);
        } else {
            at = end;
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_that_is_found_starts_and_the_one_before_does_not() {
        for limit in [1_u64, 2, 7, 99, 100] {
            for guess in [None, Some(1), Some(limit), Some(limit + 1), Some(50), Some(1_000)] {
                assert_eq!(least(0, 100, guess, |number| number >= limit), Some(limit), "{limit} {guess:?}");
                assert_eq!(
                    most(200, 100, guess.map(|guess| 200 - guess.min(200)), |n| 200 - n >= limit),
                    Some(200 - limit)
                );
            }
        }
        assert_eq!(least(0, 100, Some(5), |_| false), None);
        assert_eq!((least(3, 3, None, |_| true), most(3, 4, None, |_| true)), (None, None));
    }

    #[test]
    fn of_small_numbers_the_first_that_starts_is_found_wherever_others_do() {
        assert_eq!(least_near(10, 100, |number| [13, 40, 100].contains(&number)), Some(13));
        assert_eq!(least_near(10, 100, |number| number >= 57), Some(57));
        assert_eq!((least_near(10, 12, |_| false), least_near(10, 10, |_| true)), (None, None));
    }

    #[test]
    fn of_a_set_only_those_are_left_that_are_needed() {
        assert_eq!(needed(vec![1, 2, 3, 4], 99, |set| set.contains(&2) && set.contains(&4)), [2, 4]);
        // 1 is needed while 3 is there.
        let starts = |set: &[i32]| set.contains(&2) && (set.contains(&1) || !set.contains(&3));
        assert_eq!(needed(vec![1, 2, 3], 99, starts), [2]);
        assert_eq!(needed(vec![7], 99, |_| true), [7]);
    }

    /// Of more than a dozen nobody was asked one by one, and half of them weren't needed.
    #[test]
    fn of_a_large_set_few_are_found_without_asking_for_each() {
        let set: Vec<u32> = (0..64).collect();
        for few in [vec![63], vec![0, 63], vec![5, 6, 40], vec![1, 20, 33, 50]] {
            let mut tries = 0;
            let found = needed(set.clone(), 100, |set| {
                tries += 1;
                few.iter().all(|one| set.contains(one))
            });
            assert_eq!(found, few, "{tries} tries");
            assert!(tries <= 60, "{tries} tries for {few:?}");
        }
        // All are needed, and as much is known after a try for each part.
        assert_eq!(needed(set.clone(), 999, |fewer| fewer.len() == 64), set);
        assert_eq!(needed(set, 3, |set| set.contains(&1)).len(), 32);
    }

    #[test]
    fn a_good_guess_costs_two_tries() {
        let mut tries = 0;
        let found = least(0, 1 << 40, Some(12_345), |number| {
            tries += 1;
            number >= 12_345
        });
        assert_eq!((found, tries), (Some(12_345), 2));
    }

    #[test]
    fn where_nothing_is_monotone_the_neighbour_still_does_not_start() {
        let starts = |number: u64| number % 7 == 3 || number == 100;
        let found = least(0, 100, None, starts).unwrap();
        assert!(starts(found) && !starts(found - 1), "{found}");
    }
}
