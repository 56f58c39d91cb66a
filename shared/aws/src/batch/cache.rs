//! Answers that are good for a while: job definitions, queues.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most answers kept; when there are more, all are forgotten and asked for again.
const KEPT_MAX: usize = 500;

/// Answers by name, each for its lifetime. A thing that isn't there isn't kept: it may be made any moment.
#[derive(Debug)]
pub struct Cache<T> {
    lifetime: Duration,
    kept: Mutex<BTreeMap<String, (Instant, T)>>,
}

impl<T: Clone> Cache<T> {
    /// An empty cache.
    #[must_use]
    pub fn new(lifetime: Duration) -> Self {
        Self { lifetime, kept: Mutex::default() }
    }

    /// What is kept under a name and still good.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<T> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(name).filter(|(since, _)| since.elapsed() < self.lifetime).map(|(_, thing)| thing.clone())
    }

    /// Keeps a thing.
    pub fn put(&self, name: &str, thing: &T) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(name.to_owned(), (Instant::now(), thing.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_for_its_lifetime_and_no_longer() {
        let long = Cache::new(Duration::from_secs(60));
        long.put("a", &1);
        assert_eq!((long.get("a"), long.get("b")), (Some(1), None));
        let none = Cache::new(Duration::ZERO);
        none.put("a", &1);
        assert_eq!(none.get("a"), None);
    }

    #[test]
    fn a_cache_never_grows_beyond_its_limit() {
        let cache = Cache::new(Duration::from_secs(60));
        for n in 0..=KEPT_MAX {
            cache.put(&n.to_string(), &n);
        }
        assert_eq!((cache.get("0"), cache.get(&KEPT_MAX.to_string())), (None, Some(KEPT_MAX)));
    }
}
