//! The search for victims: the cheapest items that together give what is needed.

use std::collections::BTreeMap;

/// Steps after which a search ends with the best that it has seen. A pool whose jobs have a dozen shapes needs far fewer.
pub(super) const STEPS_MAX: u32 = 20_000;

/// What one victim gives, and costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// What it gives of each thing that is needed.
    pub gives: Vec<i64>,
    pub cost: u64,
    /// Items of one budget are limited together; `None` where nothing limits them.
    pub budget: Option<(u16, u32)>,
}

/// What the search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Covered {
    /// These items, by their places, and whether no others are known to be cheaper.
    By { items: Vec<usize>, cost: u64, is_cheapest: bool },
    /// There are enough, and they are more than may be taken.
    TooMany,
    /// All of them don't give enough.
    Never,
}

/// The cheapest items that give at least what is needed, at most so many of them, and of equally cheap ones the fewest.
///
/// Items that give the same differ only in what they cost, so of each kind the cheapest are taken: the search is over how
/// many of each kind. It is exact unless it takes more than [`STEPS_MAX`] steps. The first set that it sees takes the kinds
/// with the least cost for what they give first; where one thing is needed that costs at most twice the least, and what
/// comes later is only ever better. Whatever it finds, no item of it can be left out.
pub(super) fn cheapest(needs: &[i64], items: &[Item], most: usize) -> Covered {
    let given = |need: usize| items.iter().filter_map(|item| item.gives.get(need)).sum::<i64>();
    if (0..needs.len()).any(|need| needs.get(need).is_some_and(|wanted| given(need) < *wanted)) {
        return Covered::Never;
    }
    let mut search = Search::new(needs, items, most);
    search.walk(0, needs, 0, 0);
    let is_cheapest = search.steps <= STEPS_MAX;
    let Some((_, _, taken)) = search.best else { return Covered::TooMany };
    let taken = minimal(needs, items, taken);
    let costs = taken.iter().filter_map(|place| items.get(*place)).map(|item| item.cost);
    Covered::By { cost: costs.fold(0, u64::saturating_add), items: taken, is_cheapest }
}

/// Gives back what isn't needed, the most expensive first.
fn minimal(needs: &[i64], items: &[Item], mut taken: Vec<usize>) -> Vec<usize> {
    taken.sort_unstable_by_key(|place| (items.get(*place).map_or(0, |item| item.cost), *place));
    let is_enough = |taken: &[usize]| {
        needs.iter().enumerate().all(|(need, wanted)| {
            let gives = |place: &usize| items.get(*place).and_then(|item| item.gives.get(need)).copied().unwrap_or(0);
            taken.iter().map(gives).sum::<i64>() >= *wanted
        })
    };
    let mut at = taken.len();
    while at > 0 {
        at -= 1;
        let mut fewer = taken.clone();
        fewer.remove(at);
        if is_enough(&fewer) {
            taken = fewer;
        }
    }
    taken.sort_unstable();
    taken
}

/// What items of a kind have in common: what they give, and their budget.
type KindKey<'i> = (&'i [i64], Option<(u16, u32)>);

/// Items that give the same and share a budget, the cheapest first, by their places.
struct Kind {
    gives: Vec<i64>,
    budget: Option<(u16, u32)>,
    items: Vec<usize>,
    /// What the first so many of them cost.
    costs: Vec<u64>,
}

struct Search {
    kinds: Vec<Kind>,
    /// For each kind and each need, the least that a unit costs from this kind on, as cost and amount.
    least: Vec<Vec<Option<(u64, i64)>>>,
    most: usize,
    /// How many of each kind are taken.
    counts: Vec<usize>,
    spent: BTreeMap<u16, u32>,
    /// Cost, number and places of the best set.
    best: Option<(u64, usize, Vec<usize>)>,
    steps: u32,
}

impl Search {
    fn new(needs: &[i64], items: &[Item], most: usize) -> Self {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|place| (items.get(*place).map_or(0, |item| item.cost), *place));
        let mut kinds: BTreeMap<KindKey<'_>, Kind> = BTreeMap::new();
        for place in order {
            let Some(item) = items.get(place) else { continue };
            let kind = kinds.entry((&item.gives, item.budget)).or_insert_with(|| Kind {
                gives: item.gives.clone(),
                budget: item.budget,
                items: Vec::new(),
                costs: vec![0],
            });
            let before = kind.costs.last().copied().unwrap_or(0);
            kind.costs.push(before.saturating_add(item.cost));
            kind.items.push(place);
        }
        let mut kinds: Vec<Kind> = kinds.into_values().collect();
        kinds.sort_by(|a, b| a.price(needs).total_cmp(&b.price(needs)));
        // From the last kind to the first, then turned round.
        let mut least: Vec<Vec<Option<(u64, i64)>>> = vec![vec![None; needs.len()]];
        for kind in kinds.iter().rev() {
            let behind = least.last().into_iter().flatten().copied().enumerate();
            least.push(behind.map(|(need, behind)| cheaper(kind.unit(need), behind)).collect());
        }
        least.reverse();
        let counts = vec![0; kinds.len()];
        Self { kinds, least, most, counts, spent: BTreeMap::new(), best: None, steps: 0 }
    }

    /// Tries every number of this kind and all after it.
    fn walk(&mut self, at: usize, needs: &[i64], cost: u64, count: usize) {
        self.steps += 1;
        if self.steps > STEPS_MAX
            || self.best.as_ref().is_some_and(|best| self.bound(at, needs, cost, count) >= (best.0, best.1))
        {
            return;
        }
        if needs.iter().all(|need| *need <= 0) {
            self.best = Some((cost, count, self.taken()));
            return;
        }
        let Some(kind) = self.kinds.get(at) else { return };
        let left = kind.budget.map_or(usize::MAX, |(budget, left)| {
            usize::try_from(left.saturating_sub(self.spent.get(&budget).copied().unwrap_or(0))).unwrap_or(usize::MAX)
        });
        let useful = kind.useful(needs).min(left).min(self.most - count).min(kind.items.len());
        for number in (0..=useful).rev() {
            let Some(kind) = self.kinds.get(at) else { return };
            let more = kind.costs.get(number).copied().unwrap_or(u64::MAX);
            let given = i64::try_from(number).unwrap_or(i64::MAX);
            let after: Vec<i64> = needs.iter().zip(&kind.gives).map(|(need, gives)| need - gives * given).collect();
            self.take(at, number);
            self.walk(at + 1, &after, cost.saturating_add(more), count + number);
            self.take(at, 0);
        }
    }

    /// Sets how many of a kind are taken.
    fn take(&mut self, at: usize, number: usize) {
        let Some(was) = self.counts.get_mut(at) else { return };
        let was = std::mem::replace(was, number);
        if let Some((budget, _)) = self.kinds.get(at).and_then(|kind| kind.budget) {
            let spent = self.spent.entry(budget).or_default();
            *spent = (*spent + u32::try_from(number).unwrap_or(0)).saturating_sub(u32::try_from(was).unwrap_or(0));
        }
    }

    fn taken(&self) -> Vec<usize> {
        let kinds = self.kinds.iter().zip(&self.counts);
        kinds.flat_map(|(kind, count)| kind.items.iter().take(*count)).copied().collect()
    }

    /// No set that goes on from here costs less, or has fewer items.
    fn bound(&self, at: usize, needs: &[i64], cost: u64, count: usize) -> (u64, usize) {
        let missing = needs.iter().zip(self.least.get(at).into_iter().flatten()).filter(|(need, _)| **need > 0);
        let more = missing.map(|(need, least)| match least {
            // Rounded up: costs are whole.
            Some((price, amount)) => {
                (u128::from(*price) * need.unsigned_abs() as u128).div_ceil(amount.unsigned_abs().into())
            }
            None => u128::MAX,
        });
        let more = u64::try_from(more.max().unwrap_or(0)).unwrap_or(u64::MAX);
        let is_missing = needs.iter().any(|need| *need > 0);
        (cost.saturating_add(more), count + usize::from(is_missing))
    }
}

impl Kind {
    /// What a unit of a need costs, if the cheapest is taken.
    fn unit(&self, need: usize) -> Option<(u64, i64)> {
        let (gives, price) = (self.gives.get(need).copied()?, self.costs.get(1).copied()?);
        (gives > 0).then_some((price, gives))
    }

    /// What it costs for what it gives of all needs, none more than is needed.
    fn price(&self, needs: &[i64]) -> f64 {
        let given: i64 = needs.iter().zip(&self.gives).map(|(need, gives)| (*need).min(*gives).max(0)).sum();
        self.costs.get(1).copied().unwrap_or(0) as f64 / given.max(1) as f64
    }

    /// How many of it can be of use.
    fn useful(&self, needs: &[i64]) -> usize {
        let of = |(need, gives): (&i64, &i64)| if *need > 0 && *gives > 0 { (need + gives - 1) / gives } else { 0 };
        usize::try_from(needs.iter().zip(&self.gives).map(of).max().unwrap_or(0)).unwrap_or(0)
    }
}

/// The lower price for a unit.
fn cheaper(a: Option<(u64, i64)>, b: Option<(u64, i64)>) -> Option<(u64, i64)> {
    match (a, b) {
        (Some(x), Some(y)) => {
            let cross = |p: (u64, i64), q: (u64, i64)| u128::from(p.0) * u128::from(q.1.unsigned_abs());
            Some(if cross(x, y) <= cross(y, x) { x } else { y })
        }
        (a, b) => a.or(b),
    }
}
