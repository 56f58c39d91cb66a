//! The event queue. Time is a whole number of milliseconds and only moves when an event is taken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events in the order of their time, then of their rank, then of their arrival in the queue.
///
/// The rank settles what comes first at one instant (completions before submissions); the running number makes the
/// order total, so that a replay takes the same events in the same order.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    numbered: u64,
    now_ms: u64,
}

#[derive(Clone, Debug)]
struct Entry<E> {
    at_ms: u64,
    rank: u8,
    number: u64,
    event: E,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), numbered: 0, now_ms: 0 }
    }
}

impl<E> EventQueue<E> {
    /// The time of the last event taken, in milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Adds an event. One that would be in the past comes now: an effect can't be before its cause.
    pub fn push(&mut self, at_ms: u64, rank: u8, event: E) {
        let number = self.numbered;
        self.numbered += 1;
        self.heap.push(Reverse(Entry { at_ms: at_ms.max(self.now_ms), rank, number, event }));
    }

    /// The time of the next event.
    #[must_use]
    pub fn next_at_ms(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at_ms)
    }

    /// Takes the next event and moves the clock to it.
    pub fn pop(&mut self) -> Option<E> {
        let Reverse(Entry { at_ms, event, .. }) = self.heap.pop()?;
        self.now_ms = at_ms;
        Some(event)
    }

    /// Takes the next event if it is at this time.
    pub fn pop_at(&mut self, at_ms: u64) -> Option<E> {
        if self.next_at_ms() == Some(at_ms) { self.pop() } else { None }
    }
}

impl<E> Entry<E> {
    fn key(&self) -> (u64, u8, u64) {
        (self.at_ms, self.rank, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_rank_then_arrival() {
        let mut queue = EventQueue::default();
        for (at, rank, name) in [(5, 1, "e"), (5, 0, "c"), (5, 1, "f"), (2, 9, "b"), (5, 0, "d"), (1, 3, "a")] {
            queue.push(at, rank, name);
        }
        let mut order = Vec::new();
        while let Some(name) = queue.pop() {
            order.push((queue.now_ms(), name));
        }
        assert_eq!(order, [(1, "a"), (2, "b"), (5, "c"), (5, "d"), (5, "e"), (5, "f")]);
    }

    #[test]
    fn nothing_happens_in_the_past() {
        let mut queue = EventQueue::default();
        queue.push(10, 0, "late");
        assert_eq!(queue.pop(), Some("late"));
        queue.push(3, 0, "early");
        assert_eq!(queue.pop_at(3), None);
        assert_eq!(queue.pop_at(10), Some("early"));
        assert_eq!(queue.now_ms(), 10);
    }
}
