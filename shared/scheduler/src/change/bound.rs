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

/// The greatest number below `from` and down to `fewest` that starts, and of which the next one doesn't.
pub(super) fn most(from: u64, fewest: u64, guess: Option<u64>, mut starts: impl FnMut(u64) -> bool) -> Option<u64> {
    let top = from.checked_sub(fewest)?;
    let guess = guess.and_then(|guess| from.checked_sub(guess));
    least(0, top, guess, |less| starts(from - less)).map(|less| from - less)
}

/// The members of a set that starts the job without those that aren't needed: none of those that are left could be left out.
pub(super) fn needed<T: Copy>(mut set: Vec<T>, mut starts: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut at = 0;
    while at < set.len() && set.len() > 1 {
        let mut fewer = set.clone();
        fewer.remove(at);
        if starts(&fewer) {
            // Without it another one may be needless that was needed.
            (set, at) = (fewer, 0);
        } else {
            at += 1;
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
    fn of_a_set_only_those_are_left_that_are_needed() {
        assert_eq!(needed(vec![1, 2, 3, 4], |set| set.contains(&2) && set.contains(&4)), [2, 4]);
        // 1 is needed while 3 is there.
        let starts = |set: &[i32]| set.contains(&2) && (set.contains(&1) || !set.contains(&3));
        assert_eq!(needed(vec![1, 2, 3], starts), [2]);
        assert_eq!(needed(vec![7], |_| true), [7]);
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
