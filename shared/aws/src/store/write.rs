//! Writes.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};
use jiff::Timestamp;
use osprey_ports::store::ITEM_BYTES_MAX;
use osprey_ports::{Expect, Item, Key, StoreError, Write, limits};

use super::DynamoStore;
use super::item::{self, Attributes, COUNTER, INDEXES, index_names, number};
use super::patience::{TRIES, Tried, nonce, pause};
use crate::fault::Fault;

/// What an update with every attribute of an item counts for besides their values, at the most.
const UPDATE_BYTES: usize = 512;

/// The mark that one call leaves in the items it writes.
type Mark = [u8; 8];

impl DynamoStore {
    pub(super) async fn write(&self, writes: &[Write]) -> Result<(), StoreError> {
        limits::check_writes(writes)?;
        if !writes.iter().any(is_too_large_for_an_update) {
            return self.write_as_said(writes).await;
        }
        for turn in 0..TRIES {
            match self.write_as_said(&self.with_versions(writes).await?).await {
                Err(StoreError::Conflict { index }) if writes.get(index).is_some_and(is_too_large_for_an_update) => {
                    tokio::time::sleep(pause(turn)).await;
                }
                written => return written,
            }
        }
        Err(StoreError::Throttled)
    }

    /// The writes, with the version that is there now in place of "anything" where that can't be an update.
    async fn with_versions(&self, writes: &[Write]) -> Result<Vec<Write>, StoreError> {
        let mut exact = writes.to_vec();
        for write in &mut exact {
            if is_too_large_for_an_update(write)
                && let Write::Put { item, expect } = write
            {
                let there = self.get(&item.key).await?;
                *expect = there.map_or(Expect::Absent, |there| Expect::Version(there.version));
            }
        }
        Ok(exact)
    }

    async fn write_as_said(&self, writes: &[Write]) -> Result<(), StoreError> {
        let call = nonce();
        let [a, b, c, d, e, f, g, h, ..] = call.into_bytes();
        let by = [a, b, c, d, e, f, g, h];
        let whole = match writes {
            [Write::Put { .. } | Write::Delete { expect: Expect::Any, .. }] => Vec::new(),
            _ => writes.iter().map(|write| in_transaction(&self.table, write, &by)).collect::<Result<_, _>>()?,
        };
        let token = call.to_string();
        for turn in 0..TRIES {
            let tried = match writes {
                [Write::Put { item, expect: Expect::Any }] => self.replace(item, &by).await,
                [Write::Put { item, expect }] => self.put(item, *expect, &by).await,
                [Write::Delete { key, expect: Expect::Any }] => self.delete(key).await,
                _ => self.transact(&whole, &token, writes).await,
            };
            match tried {
                Tried::Done(result) => return result,
                Tried::Busy => tokio::time::sleep(pause(turn)).await,
            }
        }
        Err(StoreError::Throttled)
    }

    /// Puts an item under a condition. A condition that fails on an item with our own mark has held before: the reply
    /// to it was lost.
    async fn put(&self, item: &Item, expect: Expect, by: &Mark) -> Tried {
        let (condition, expected) = condition(expect);
        let sent = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item::whole(item, next(expect), by)))
            .set_condition_expression(condition)
            .set_expression_attribute_values(expected)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let error = match sent {
            Ok(_) => return Tried::Done(Ok(())),
            Err(error) => error,
        };
        if let Some(PutItemError::ConditionalCheckFailedException(failed)) = error.as_service_error() {
            let ours = failed.item().and_then(|there| there.get("w")) == Some(&item::mark(by));
            return Tried::Done(if ours { Ok(()) } else { Err(StoreError::Conflict { index: 0 }) });
        }
        failed("dynamodb:PutItem", &error)
    }

    /// Puts an item over whatever is there. Once too often does no harm but to the version.
    async fn replace(&self, item: &Item, by: &Mark) -> Tried {
        let Replace { expression, names, values } = Replace::of(item, by);
        let sent = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(item::key(&item.key)))
            .update_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .send()
            .await;
        match sent {
            Ok(_) => Tried::Done(Ok(())),
            Err(error) => failed("dynamodb:UpdateItem", &error),
        }
    }

    async fn delete(&self, key: &Key) -> Tried {
        let sent = self.client.delete_item().table_name(&self.table).set_key(Some(item::key(key))).send().await;
        match sent {
            Ok(_) => Tried::Done(Ok(())),
            Err(error) => failed("dynamodb:DeleteItem", &error),
        }
    }

    async fn transact(&self, items: &[TransactWriteItem], token: &str, writes: &[Write]) -> Tried {
        let request =
            self.client.transact_write_items().set_transact_items(Some(items.to_vec())).client_request_token(token);
        let error = match request.send().await {
            Ok(_) => return Tried::Done(Ok(())),
            Err(error) => error,
        };
        match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                reasons(cancelled.cancellation_reasons(), writes)
            }
            Some(TransactWriteItemsError::TransactionInProgressException(_)) => Tried::Busy,
            _ => failed("dynamodb:TransactWriteItems", &error),
        }
    }
}

/// Whether a write can't go as an update: DynamoDB counts what an update says against the limit of an item, so one that
/// is nearly as large as an item may be has to be put, and a put has to know the version.
fn is_too_large_for_an_update(write: &Write) -> bool {
    matches!(write, Write::Put { item, expect: Expect::Any } if item.bytes() + UPDATE_BYTES > ITEM_BYTES_MAX)
}

/// The version after a write that expects `expect`.
fn next(expect: Expect) -> u64 {
    match expect {
        Expect::Version(version) => version.saturating_add(1),
        Expect::Absent | Expect::Any => 1,
    }
}

/// The condition that a write states, and the values in it.
fn condition(expect: Expect) -> (Option<String>, Option<Attributes>) {
    match expect {
        Expect::Any => (None, None),
        Expect::Absent => (Some("attribute_not_exists(pk)".to_owned()), None),
        Expect::Version(version) => {
            (Some("v = :e".to_owned()), Some(Attributes::from([(":e".to_owned(), number(version))])))
        }
    }
}

/// An update that leaves an item as a put would, and raises the version of what was there.
struct Replace {
    expression: String,
    names: std::collections::HashMap<String, String>,
    values: Attributes,
}

impl Replace {
    fn of(item: &Item, by: &Mark) -> Self {
        let new = item::rest(item, by);
        let indexed = INDEXES.into_iter().flat_map(|index| {
            let (_, partition, sort) = index_names(index);
            [partition, sort]
        });
        let gone: Vec<&str> = indexed.chain(["ttl"]).filter(|name| !new.contains_key(*name)).collect();
        let names = new.keys().map(String::as_str).chain(gone.iter().copied());
        let names = names.map(|name| (format!("#{name}"), name.to_owned())).collect();
        let sorted: BTreeMap<_, _> = new.into_iter().collect();
        let set: Vec<String> = sorted.keys().map(|name| format!("#{name} = :{name}")).collect();
        let remove: Vec<String> = gone.iter().map(|name| format!("#{name}")).collect();
        let remove = if remove.is_empty() { String::new() } else { format!(" REMOVE {}", remove.join(", ")) };
        let mut values: Attributes = sorted.into_iter().map(|(name, value)| (format!(":{name}"), value)).collect();
        values.insert(":one".to_owned(), number(1));
        Self { expression: format!("SET {}{remove} ADD v :one", set.join(", ")), names, values }
    }
}

/// One write as a part of a transaction.
fn in_transaction(table: &str, write: &Write, by: &Mark) -> Result<TransactWriteItem, StoreError> {
    let whole = TransactWriteItem::builder();
    Ok(match write {
        Write::Put { item, expect: Expect::Any } => whole.update(replace_in_transaction(table, item, by)?),
        Write::Put { item, expect } => {
            let (condition, expected) = condition(*expect);
            let put = Put::builder()
                .table_name(table)
                .set_item(Some(item::whole(item, next(*expect), by)))
                .set_condition_expression(condition)
                .set_expression_attribute_values(expected);
            whole.put(put.build().map_err(incomplete)?)
        }
        Write::Delete { key, expect } => {
            let (condition, expected) = condition(*expect);
            let delete = Delete::builder()
                .table_name(table)
                .set_key(Some(item::key(key)))
                .set_condition_expression(condition)
                .set_expression_attribute_values(expected);
            whole.delete(delete.build().map_err(incomplete)?)
        }
        Write::Check { key, expect } => {
            let (condition, expected) = condition(*expect);
            let anything = "attribute_exists(pk) OR attribute_not_exists(pk)".to_owned();
            let check = ConditionCheck::builder()
                .table_name(table)
                .set_key(Some(item::key(key)))
                .condition_expression(condition.unwrap_or(anything))
                .set_expression_attribute_values(expected);
            whole.condition_check(check.build().map_err(incomplete)?)
        }
        Write::Add { key, amounts, at_most, expires_at } => {
            whole.update(add(table, key, amounts, at_most, *expires_at)?)
        }
    }
    .build())
}

fn replace_in_transaction(table: &str, item: &Item, by: &Mark) -> Result<Update, StoreError> {
    let Replace { expression, names, values } = Replace::of(item, by);
    Update::builder()
        .table_name(table)
        .set_key(Some(item::key(&item.key)))
        .update_expression(expression)
        .set_expression_attribute_names(Some(names))
        .set_expression_attribute_values(Some(values))
        .build()
        .map_err(incomplete)
}

/// An addition. It demands that the item is a counter, or isn't there, and that no number becomes more than it may be.
fn add(
    table: &str,
    key: &Key,
    amounts: &BTreeMap<String, i64>,
    at_most: &BTreeMap<String, i64>,
    expires_at: Option<Timestamp>,
) -> Result<Update, StoreError> {
    let mut adds = vec!["v :one".to_owned()];
    let mut condition = "attribute_not_exists(body)".to_owned();
    let mut update = Update::builder()
        .table_name(table)
        .set_key(Some(item::key(key)))
        .expression_attribute_values(":one", number(1));
    for (place, (name, amount)) in amounts.iter().enumerate() {
        adds.push(format!("#n{place} :n{place}"));
        update = update
            .expression_attribute_names(format!("#n{place}"), format!("{COUNTER}{name}"))
            .expression_attribute_values(format!(":n{place}"), number(*amount));
        if let Some(most) = at_most.get(name) {
            let room = most.saturating_sub(*amount);
            // A number that isn't there is 0, which is too much already where there is no room.
            let absent = if room >= 0 { format!("attribute_not_exists(#n{place}) OR ") } else { String::new() };
            condition.push_str(&format!(" AND ({absent}#n{place} <= :m{place})"));
            update = update.expression_attribute_values(format!(":m{place}"), number(room));
        }
    }
    let mut expression = format!("ADD {}", adds.join(", "));
    if let Some(at) = expires_at {
        expression.push_str(" SET #ttl = :ttl");
        update = update
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_values(":ttl", AttributeValue::N(at.as_second().to_string()));
    }
    update.condition_expression(condition).update_expression(expression).build().map_err(incomplete)
}

/// INVARIANT: every part names its table, key and expression, which is all that the SDK demands.
fn incomplete(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unusable(format!("a write could not be put together: {error}"))
}

/// Why a transaction was cancelled: the first write that is to blame decides, and none was made.
fn reasons(reasons: &[CancellationReason], writes: &[Write]) -> Tried {
    let blamed = |index: usize, code: &str, message: &str| match code {
        "ConditionalCheckFailed" => Some(Tried::Done(Err(match writes.get(index) {
            Some(Write::Add { at_most, .. }) if at_most.is_empty() => {
                limits::refused("the item that should be added to is no object of whole numbers")
            }
            _ => StoreError::Conflict { index },
        }))),
        "None" | "" => None,
        "TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded" => Some(Tried::Busy),
        _ => Some(Tried::Done(Err(invalid(message)))),
    };
    let mut each = reasons.iter().enumerate();
    each.find_map(|(index, reason)| {
        blamed(index, reason.code().unwrap_or_default(), reason.message().unwrap_or_default())
    })
    .unwrap_or_else(|| {
        Tried::Done(Err(StoreError::Unknown("the transaction was cancelled without a reason".to_owned())))
    })
}

/// What DynamoDB finds wrong with a request that passed our own limits: an item over its size, above all.
fn invalid(message: &str) -> StoreError {
    if message.contains("size has exceeded") || message.contains("size to update has exceeded") {
        return StoreError::TooLarge { what: "the item in bytes", limit: ITEM_BYTES_MAX, given: ITEM_BYTES_MAX + 1 };
    }
    limits::refused(message)
}

fn failed<E>(action: &str, error: &SdkError<E, HttpResponse>) -> Tried
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    if error.code() == Some("TransactionConflictException") {
        return Tried::Busy;
    }
    Tried::Done(Err(match Fault::of(action, error) {
        Fault::Refused(message) => invalid(&message),
        fault => fault.into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cancelled(codes: &[&str]) -> Tried {
        let list: Vec<CancellationReason> =
            codes.iter().map(|code| CancellationReason::builder().code(*code).build()).collect();
        let check = Write::Check { key: Key::new("a", "b"), expect: Expect::Any };
        reasons(&list, &vec![check; codes.len()])
    }

    #[test]
    fn of_several_reasons_the_first_counts() {
        let conflict = |index| format!("{:?}", Tried::Done(Err(StoreError::Conflict { index })));
        assert_eq!(
            format!("{:?}", cancelled(&["None", "ConditionalCheckFailed", "ConditionalCheckFailed"])),
            conflict(1)
        );
        assert!(matches!(cancelled(&["None", "TransactionConflict"]), Tried::Busy), "nobody's condition failed");
        assert!(matches!(cancelled(&["None"]), Tried::Done(Err(StoreError::Unknown(_)))));
    }

    #[test]
    fn a_replacement_takes_away_what_the_new_item_lacks() {
        let replace = Replace::of(&Item::new(Key::new("a", "b"), "{}"), &[0; 8]);
        assert_eq!(
            replace.expression,
            "SET #body = :body, #w = :w REMOVE #due_pk, #due_sk, #listing_pk, #listing_sk, #running_pk, #running_sk, #ttl ADD v :one"
        );
    }
}
