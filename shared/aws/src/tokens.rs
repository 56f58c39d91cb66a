//! Tokens for `SubmitJob`: the account's 50 calls a second are shared with others, and by functions that know nothing of
//! each other.
//!
//! One counter item of the table holds a time: up to there every slot is given away. A process leases
//! [`LEASE`] slots at once by moving that time on, in one conditional update, and sends each call not before its slot. So all
//! processes together keep the rate without a look at each other, and one token costs a tenth of a write. Slots that
//! come too late to be used are lost; nothing is ever owed.
//!
//! The time may run ahead of the clock by `HORIZON`. Beyond that there is no token: the job stays in its queue.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use jiff::Timestamp;
use osprey_ports::Key;

use crate::fault::Fault;
use crate::store::item_key;

/// Slots in one lease.
pub const LEASE: u32 = 10;
/// How far slots may be given away ahead of the clock, microseconds; also about the longest wait for one.
const HORIZON: i64 = 1_000_000;
/// How late a slot may be used, microseconds: a call to Batch takes some tenths of a second, and slots wait meanwhile.
const LATE: i64 = 2_000_000;
/// The pace kept, in thousandths of the rate: what clocks and networks smear must not add up to one call too many.
const PACE: i64 = 985;
/// Tries to lease when others lease at the same moment.
const TRIES: u32 = 5;
/// Pause before the counter is looked at again when it couldn't be reached, microseconds.
const TROUBLE: i64 = 1_000_000;

/// Where the counter is.
#[must_use]
pub fn key() -> Key {
    Key::new("TOKENS", "SubmitJob")
}

/// The tokens of one process.
#[derive(Debug)]
pub struct SubmitTokens {
    /// Client and table; `None` for a process that needs no tokens.
    counter: Option<(Client, String)>,
    /// Time between two slots, microseconds.
    interval: i64,
    lease: Mutex<Lease>,
}

/// What a process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lease {
    /// Time of the next slot, microseconds since 1970.
    next: i64,
    /// Slots left.
    left: u32,
    /// Before this time there is nothing to lease.
    dry_until: i64,
}

impl Lease {
    /// Drops slots that are too late to be used.
    fn trim(&mut self, now: i64, interval: i64) {
        while self.left > 0 && self.next.saturating_add(LATE) < now {
            self.next = self.next.saturating_add(interval);
            self.left -= 1;
        }
    }

    /// Takes a slot; its time.
    fn take(&mut self, interval: i64) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        self.next = at.saturating_add(interval);
        Some(at)
    }
}

/// What an attempt to lease came to.
enum Leased {
    /// From this time on.
    From(i64),
    /// Not before this time.
    Dry(i64),
    /// Others leased at the same moment.
    Raced,
}

impl SubmitTokens {
    /// Tokens for `rate` calls a second (at least 1), all processes together.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>, rate: u32) -> Self {
        let interval = 1_000_000_000 / (PACE * i64::from(rate.max(1)));
        Self { counter: Some((client, table.into())), interval, lease: Mutex::default() }
    }

    /// As many tokens as are asked for: for a process that is alone with its Batch.
    #[must_use]
    pub fn unlimited() -> Self {
        Self { counter: None, interval: 0, lease: Mutex::default() }
    }

    /// Makes sure that there is a token in hand.
    ///
    /// # Errors
    /// The time before which there is none.
    pub async fn ready(&self) -> Result<(), Timestamp> {
        let Some(counter) = &self.counter else { return Ok(()) };
        for _ in 0..TRIES {
            let now = micros();
            let lease = self.look(now);
            if lease.left > 0 {
                return Ok(());
            }
            if lease.dry_until > now {
                return Err(timestamp(lease.dry_until));
            }
            match self.lease(counter, now).await {
                Leased::From(start) => self.keep(Lease { next: start, left: LEASE, dry_until: 0 }),
                Leased::Dry(until) => self.keep(Lease { dry_until: until, ..Lease::default() }),
                Leased::Raced => {}
            }
        }
        Err(timestamp(micros().saturating_add(TROUBLE)))
    }

    /// Takes a token and waits for its slot; `false` when there is none.
    pub async fn take(&self) -> bool {
        if self.ready().await.is_err() {
            return false;
        }
        if self.counter.is_none() {
            return true;
        }
        let slot = self.lease.lock().unwrap_or_else(PoisonError::into_inner).take(self.interval);
        let Some(at) = slot else { return false };
        if let Ok(wait @ 1..) = u64::try_from(at.saturating_sub(micros())) {
            tokio::time::sleep(Duration::from_micros(wait)).await;
        }
        true
    }

    /// Drops what is held: Batch throttled, so somebody else uses the account's rate as well.
    pub fn drop_lease(&self) {
        self.keep(Lease { dry_until: micros().saturating_add(TROUBLE), ..Lease::default() });
    }

    fn look(&self, now: i64) -> Lease {
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        lease.trim(now, self.interval);
        *lease
    }

    fn keep(&self, lease: Lease) {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = lease;
    }

    /// Moves the time up to which slots are given away: on from where it is, or from now when it has fallen behind.
    async fn lease(&self, counter: &(Client, String), now: i64) -> Leased {
        let cost = self.interval.saturating_mul(i64::from(LEASE));
        let values = [(":cost", cost), (":now", now), (":end", now.saturating_add(HORIZON)), (":one", 1)];
        let on =
            update(counter, "SET n_until = n_until + :cost ADD v :one", "n_until BETWEEN :now AND :end", &values).await;
        let until = match on {
            Ok(until) => return Leased::From(until.saturating_sub(cost)),
            Err(Failed::Condition(until)) => until,
            Err(Failed::Call(why)) => return trouble(now, &why),
        };
        if let Some(until) = until.filter(|until| *until > now) {
            return Leased::Dry(until.saturating_sub(HORIZON));
        }
        let values = [(":next", now.saturating_add(cost)), (":now", now), (":one", 1)];
        let fresh = "attribute_not_exists(n_until) OR n_until < :now";
        match update(counter, "SET n_until = :next ADD v :one", fresh, &values).await {
            Ok(_) => Leased::From(now),
            Err(Failed::Condition(_)) => Leased::Raced,
            Err(Failed::Call(why)) => trouble(now, &why),
        }
    }
}

/// Updates the counter; the time that is there then.
async fn update(
    (client, table): &(Client, String),
    expression: &str,
    condition: &str,
    values: &[(&str, i64)],
) -> Result<i64, Failed> {
    let mut request = client
        .update_item()
        .table_name(table)
        .set_key(Some(item_key(&key())))
        .update_expression(expression)
        .condition_expression(condition)
        .return_values(ReturnValue::UpdatedNew)
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    for (name, value) in values {
        request = request.expression_attribute_values(*name, AttributeValue::N(value.to_string()));
    }
    let answer = request.send().await.map_err(|error| Failed::of(&error))?;
    until(answer.attributes()).ok_or_else(|| Failed::Call("the counter's answer has no time".to_owned()))
}

/// An update of the counter that wasn't made.
enum Failed {
    /// Its condition didn't hold; the time that is there.
    Condition(Option<i64>),
    /// Anything else.
    Call(String),
}

impl Failed {
    fn of(error: &SdkError<UpdateItemError, HttpResponse>) -> Self {
        match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(failed)) => Self::Condition(until(failed.item())),
            _ => Self::Call(format!("{:?}", Fault::of("dynamodb:UpdateItem", error))),
        }
    }
}

fn until(attributes: Option<&std::collections::HashMap<String, AttributeValue>>) -> Option<i64> {
    attributes?.get("n_until")?.as_n().ok()?.parse().ok()
}

fn trouble(now: i64, why: &str) -> Leased {
    tracing::warn!(why, "the counter of tokens could not be used.");
    Leased::Dry(now.saturating_add(TROUBLE))
}

fn micros() -> i64 {
    Timestamp::now().as_microsecond()
}

fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_an_interval_apart_and_lost_when_they_are_too_late() {
        let mut lease = Lease { next: 1_000, left: 3, dry_until: 0 };
        assert_eq!((lease.take(20), lease.take(20)), (Some(1_000), Some(1_020)));
        lease.trim(1_040 + LATE, 20);
        assert_eq!(lease.left, 1, "just in time");
        lease.trim(1_041 + LATE, 20);
        assert_eq!(lease.take(20), None, "too late");
    }
}
