//! Reads.

use aws_sdk_dynamodb::types::AttributeValue;
use osprey_ports::store::PAGE_ITEMS_MAX;
use osprey_ports::{IndexPage, IndexQuery, Item, Key, Page, SortQuery, StoreError, limits};

use super::DynamoStore;
use super::item::{self, Attributes, index_names, text};
use crate::fault::Fault;

impl DynamoStore {
    pub(super) async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        limits::check_key(key)?;
        let request =
            self.client.get_item().table_name(&self.table).set_key(Some(item::key(key))).consistent_read(true);
        let answer = request.send().await.map_err(|error| StoreError::from(Fault::of("dynamodb:GetItem", &error)))?;
        answer.item().map(item::read).transpose()
    }

    pub(super) async fn query(&self, query: &SortQuery) -> Result<Page, StoreError> {
        limits::check_query(&query.partition, query.limit)?;
        let Some(start) = start_of(query) else { return Ok(Page::default()) };
        let with_prefix = if query.prefix.is_empty() { "" } else { " AND begins_with(sk, :s)" };
        let mut request = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression(format!("pk = :p{with_prefix}"))
            .expression_attribute_values(":p", text(&query.partition))
            .limit(page_limit(query.limit))
            .set_exclusive_start_key(start);
        if !query.prefix.is_empty() {
            request = request.expression_attribute_values(":s", text(&query.prefix));
        }
        let answer = request.send().await.map_err(|error| StoreError::from(Fault::of("dynamodb:Query", &error)))?;
        let items = answer.items().iter().map(item::read).collect::<Result<_, _>>()?;
        Ok(Page { items, more: answer.last_evaluated_key().is_some() })
    }

    pub(super) async fn query_index(&self, query: &IndexQuery) -> Result<IndexPage, StoreError> {
        limits::check_query(&query.partition, query.limit)?;
        if matches!((&query.from, &query.to), (Some(from), Some(to)) if from > to) {
            return Ok(IndexPage::default());
        }
        let (name, partition, sort) = index_names(query.index);
        let bounds = match (&query.from, &query.to) {
            (Some(_), Some(_)) => format!(" AND {sort} BETWEEN :f AND :t"),
            (Some(_), None) => format!(" AND {sort} >= :f"),
            (None, Some(_)) => format!(" AND {sort} <= :t"),
            (None, None) => String::new(),
        };
        let mut request = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(name)
            .key_condition_expression(format!("{partition} = :p{bounds}"))
            .expression_attribute_values(":p", text(&query.partition))
            .scan_index_forward(!query.newest_first)
            .limit(page_limit(query.limit))
            .set_exclusive_start_key(index_start(query));
        for (placeholder, bound) in [(":f", &query.from), (":t", &query.to)] {
            if let Some(bound) = bound {
                request = request.expression_attribute_values(placeholder, text(bound));
            }
        }
        let answer = request.send().await.map_err(|error| StoreError::from(Fault::of("dynamodb:Query", &error)))?;
        let row = |row: &Attributes| {
            let key = Key::new(item::text_of(row, "pk")?, item::text_of(row, "sk")?);
            Ok((item::text_of(row, sort)?.to_owned(), key))
        };
        let entries = answer.items().iter().map(row).collect::<Result<_, StoreError>>()?;
        Ok(IndexPage { entries, more: answer.last_evaluated_key().is_some() })
    }
}

/// A page's length as DynamoDB takes it.
fn page_limit(limit: usize) -> i32 {
    i32::try_from(limit.min(PAGE_ITEMS_MAX)).unwrap_or(i32::MAX)
}

/// Where the range of a query starts: `Some(None)` for its beginning; `None` when nothing can follow. DynamoDB takes
/// a start key only inside the range, and all texts that start with a prefix lie together.
fn start_of(query: &SortQuery) -> Option<Option<Attributes>> {
    match &query.after {
        Some(after) if after.starts_with(&query.prefix) => {
            Some(Some(item::key(&Key::new(query.partition.as_str(), after.as_str()))))
        }
        Some(after) if *after > query.prefix => None,
        _ => Some(None),
    }
}

fn index_start(query: &IndexQuery) -> Option<Attributes> {
    let (at, key) = query.after.as_ref()?;
    let (_, partition, sort) = index_names(query.index);
    let mut start = item::key(key);
    start.insert(partition.to_owned(), text(&query.partition));
    start.insert(sort.to_owned(), AttributeValue::S(at.clone()));
    Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(prefix: &str, after: Option<&str>) -> SortQuery {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        SortQuery { partition: "p".to_owned(), prefix, after, limit: 1 }
    }

    #[test]
    fn a_start_key_lies_inside_the_range_or_isnt_given() {
        assert_eq!(start_of(&query("b#", None)), Some(None));
        assert_eq!(start_of(&query("b#", Some("a"))), Some(None), "before the range");
        assert_eq!(start_of(&query("b#", Some("c"))), None, "behind the range nothing follows");
        assert!(start_of(&query("b#", Some("b#1"))).unwrap().is_some());
        assert_eq!(start_of(&query("", Some("x"))).unwrap().unwrap().len(), 2);
    }
}
