//! Items as attributes, and back.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use osprey_ports::{Index, IndexEntry, Item, Key, StoreError};

/// The attributes of an item.
pub(crate) type Attributes = HashMap<String, AttributeValue>;

/// Start of the names of counters.
pub(super) const COUNTER: &str = "n_";

/// The names of an index and of its two keys.
pub(super) fn index_names(index: Index) -> (&'static str, &'static str, &'static str) {
    match index {
        Index::Due => ("due", "due_pk", "due_sk"),
        Index::Listing => ("listing", "listing_pk", "listing_sk"),
        Index::Running => ("running", "running_pk", "running_sk"),
    }
}

/// Every index.
pub(super) const INDEXES: [Index; 3] = [Index::Due, Index::Listing, Index::Running];

pub(super) fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

pub(super) fn number(value: impl Into<i128>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

pub(super) fn mark(value: &[u8; 8]) -> AttributeValue {
    AttributeValue::B(Blob::new(value.as_slice()))
}

/// The two attributes of a key.
pub(crate) fn key(key: &Key) -> Attributes {
    HashMap::from([("pk".to_owned(), text(&key.partition)), ("sk".to_owned(), text(&key.sort))])
}

/// Everything of an item but key and version.
pub(super) fn rest(item: &Item, by: &[u8; 8]) -> Attributes {
    let mut attributes = HashMap::from([("body".to_owned(), text(&item.body)), ("w".to_owned(), mark(by))]);
    for entry in &item.indexes {
        let (_, partition, sort) = index_names(entry.index);
        attributes.insert(partition.to_owned(), text(&entry.partition));
        attributes.insert(sort.to_owned(), text(&entry.sort));
    }
    attributes.extend(item.expires_at.map(|at| ("ttl".to_owned(), number(at.as_second()))));
    attributes
}

/// A whole item.
pub(super) fn whole(item: &Item, version: u64, by: &[u8; 8]) -> Attributes {
    let mut attributes = key(&item.key);
    attributes.extend(rest(item, by));
    attributes.insert("v".to_owned(), number(version));
    attributes
}

/// Reads an item.
pub(super) fn read(attributes: &Attributes) -> Result<Item, StoreError> {
    let key = Key::new(text_of(attributes, "pk")?, text_of(attributes, "sk")?);
    let unreadable = |what: &str| corrupt(&key, what);
    let version = number_of(attributes, "v").ok_or_else(|| unreadable("version"))?;
    let body = match attributes.get("body") {
        Some(AttributeValue::S(body)) => body.clone(),
        Some(_) => return Err(unreadable("body")),
        None => counters(attributes).ok_or_else(|| unreadable("counter"))?,
    };
    let seconds = number_of(attributes, "ttl").and_then(|at| i64::try_from(at).ok());
    Ok(Item {
        version,
        body,
        indexes: INDEXES.into_iter().filter_map(|index| entry(attributes, index)).collect(),
        expires_at: seconds.and_then(|at| Timestamp::from_second(at).ok()),
        key,
    })
}

fn corrupt(key: &Key, what: &str) -> StoreError {
    StoreError::Unusable(format!("item `{} / {}` has no readable {what}", key.partition, key.sort))
}

/// The text of an attribute that must be there.
pub(super) fn text_of<'a>(attributes: &'a Attributes, name: &str) -> Result<&'a str, StoreError> {
    match attributes.get(name) {
        Some(AttributeValue::S(value)) => Ok(value),
        _ => Err(StoreError::Unusable(format!("an item of the table has no text `{name}`"))),
    }
}

fn number_of(attributes: &Attributes, name: &str) -> Option<u64> {
    attributes.get(name)?.as_n().ok()?.parse().ok()
}

fn entry(attributes: &Attributes, index: Index) -> Option<IndexEntry> {
    let (_, partition, sort) = index_names(index);
    let (partition, sort) = (text_of(attributes, partition).ok()?, text_of(attributes, sort).ok()?);
    Some(IndexEntry { index, partition: partition.to_owned(), sort: sort.to_owned() })
}

/// The body of a counter item: an object of its numbers.
fn counters(attributes: &Attributes) -> Option<String> {
    let mut numbers: BTreeMap<&str, i64> = BTreeMap::new();
    for (name, value) in attributes {
        if let Some(name) = name.strip_prefix(COUNTER) {
            numbers.insert(name, value.as_n().ok()?.parse().ok()?);
        }
    }
    serde_json::to_string(&numbers).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_read_as_it_was_written() {
        let indexes = [Index::Due, Index::Running]
            .map(|index| IndexEntry { index, partition: "p".to_owned(), sort: format!("{index:?}") })
            .to_vec();
        let expires_at = Timestamp::from_second(4_000_000_000).ok();
        let item = Item { version: 7, indexes, expires_at, ..Item::new(Key::new("a", "b"), "{\"x\":\"é\"}") };
        assert_eq!(read(&whole(&item, 7, &[1; 8])), Ok(item));
    }

    #[test]
    fn a_counter_item_reads_as_an_object_of_its_numbers() {
        let mut attributes = key(&Key::new("a", "b"));
        attributes.insert("v".to_owned(), number(2));
        attributes.insert("n_y".to_owned(), number(i64::MAX));
        attributes.insert("n_x".to_owned(), number(-3));
        assert_eq!(read(&attributes).unwrap().body, r#"{"x":-3,"y":9223372036854775807}"#);
    }

    #[test]
    fn an_item_of_another_hand_is_refused_by_name() {
        let error = read(&key(&Key::new("a", "b"))).unwrap_err();
        assert_eq!(error.to_string(), "the store can't be used: item `a / b` has no readable version");
    }
}
