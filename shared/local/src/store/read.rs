//! Reads. Ranges are walked in the order of the primary keys, so a page costs what it holds.

use jiff::Timestamp;
use osprey_ports::store::PAGE_ITEMS_MAX;
use osprey_ports::{Index, IndexEntry, IndexPage, IndexQuery, Item, Key, Page, SortQuery, StoreError};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, Row, ToSql, params};

use super::PAGE_BYTES_MAX;
use crate::database::{Fault, Statements};

/// An upper bound. SQLite orders every blob after every text, so an empty blob is the bound that bounds nothing.
enum Bound {
    Text(String),
    Nothing,
}

impl ToSql for Bound {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::Nothing => Ok(ToSqlOutput::from([].as_slice())),
        }
    }
}

impl From<Option<String>> for Bound {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Nothing, Self::Text)
    }
}

/// The number of an index in the table.
pub(super) fn number(index: Index) -> i64 {
    match index {
        Index::Due => 1,
        Index::Listing => 2,
        Index::Running => 3,
    }
}

pub(super) fn item(connection: &Connection, key: &Key) -> Result<Option<Item>, Fault<StoreError>> {
    let sql = "SELECT pk, sk, version, body, entries, expires_at FROM items WHERE pk = ?1 AND sk = ?2";
    Ok(connection.first(sql, params![key.partition, key.sort], row_item)?)
}

fn row_item(row: &Row<'_>) -> rusqlite::Result<Item> {
    Ok(Item {
        key: Key { partition: row.get(0)?, sort: row.get(1)? },
        version: row.get::<_, i64>(2)?.unsigned_abs(),
        body: row.get(3)?,
        indexes: entries_from(&row.get::<_, String>(4)?),
        expires_at: row.get::<_, Option<i64>>(5)?.and_then(|second| Timestamp::from_second(second).ok()),
    })
}

/// Writes entries as the column that keeps them with their item; in the order of the indexes.
pub(super) fn entries_text(entries: &[IndexEntry]) -> String {
    let mut rows: Vec<_> = entries.iter().map(|e| (number(e.index), &e.partition, &e.sort)).collect();
    rows.sort_unstable();
    serde_json::to_string(&rows).unwrap_or_default()
}

/// Reads that column.
pub(super) fn entries_from(text: &str) -> Vec<IndexEntry> {
    let rows: Vec<(i64, String, String)> = serde_json::from_str(text).unwrap_or_default();
    let index = |n| match n {
        1 => Index::Due,
        2 => Index::Listing,
        _ => Index::Running,
    };
    rows.into_iter().map(|(n, partition, sort)| IndexEntry { index: index(n), partition, sort }).collect()
}

pub(super) fn page(connection: &Connection, query: &SortQuery) -> Result<Page, Fault<StoreError>> {
    let mut statement = connection.prepare_cached(
        "SELECT pk, sk, version, body, entries, expires_at FROM items
         WHERE pk = ?1 AND sk >= ?2 AND sk < ?3 ORDER BY sk",
    )?;
    let bounds = params![query.partition, first_key(query), Bound::from(after_prefix(&query.prefix))];
    let rows = statement.query_map(bounds, row_item)?;
    let (mut page, mut bytes) = (Page::default(), 0);
    for row in rows {
        let item = row?;
        bytes += item.bytes();
        let full = page.items.len() >= query.limit.min(PAGE_ITEMS_MAX);
        if full || (bytes > PAGE_BYTES_MAX && !page.items.is_empty()) {
            page.more = true;
            break;
        }
        page.items.push(item);
    }
    Ok(page)
}

/// First key that may be answered: the prefix itself, or the key right after `after`.
fn first_key(query: &SortQuery) -> String {
    let next = query.after.as_ref().map(|after| format!("{after}\0")).unwrap_or_default();
    next.max(query.prefix.clone())
}

/// The first text after all those that start with `prefix`; `None` when there is none.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut rest: Vec<char> = prefix.chars().collect();
    while let Some(last) = rest.pop() {
        if let Some(next) = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32) {
            rest.push(next);
            return Some(rest.into_iter().collect());
        }
    }
    None
}

const ASCENDING: &str = "
    SELECT isk, pk, sk FROM entries
    WHERE which = ?1 AND ipk = ?2 AND isk >= ?3 AND isk <= ?4 AND (isk, pk, sk) > (?5, ?6, ?7)
      AND since <= ?8 AND (until IS NULL OR until > ?8)
    ORDER BY isk, pk, sk LIMIT ?9";
const DESCENDING: &str = "
    SELECT isk, pk, sk FROM entries
    WHERE which = ?1 AND ipk = ?2 AND isk >= ?3 AND isk <= ?4 AND (isk, pk, sk) < (?5, ?6, ?7)
      AND since <= ?8 AND (until IS NULL OR until > ?8)
    ORDER BY isk DESC, pk DESC, sk DESC LIMIT ?9";

/// Reads a page of an index as of a time; now when there is none.
pub(super) fn index_page(
    connection: &Connection,
    query: &IndexQuery,
    as_of: Option<Timestamp>,
) -> Result<IndexPage, Fault<StoreError>> {
    let limit = query.limit.min(PAGE_ITEMS_MAX);
    let range = Range::of(query);
    let time = as_of.map_or(i64::MAX, Timestamp::as_millisecond);
    let rows_max = i64::try_from(limit + 1).unwrap_or(i64::MAX);
    let sql = if query.newest_first { DESCENDING } else { ASCENDING };
    let [isk, pk, sk] = &range.beyond;
    let bounds = params![number(query.index), query.partition, range.from, range.to, isk, pk, sk, time, rows_max];
    let entry = |row: &Row<'_>| Ok((row.get(0)?, Key { partition: row.get(1)?, sort: row.get(2)? }));
    let mut entries = connection.all(sql, bounds, entry)?;
    let more = entries.len() > limit;
    entries.truncate(limit);
    Ok(IndexPage { entries, more })
}

/// Bounds of an index query. `from` and `to` are drawn in to where the page before ended, so that a late page does
/// not walk over the early ones.
struct Range {
    from: String,
    to: Bound,
    beyond: [Bound; 3],
}

impl Range {
    fn of(query: &IndexQuery) -> Self {
        let mut from = query.from.clone().unwrap_or_default();
        let mut to = query.to.clone();
        let Some((isk, key)) = query.after.clone() else {
            return Self { from, to: to.into(), beyond: Self::before_all(query.newest_first) };
        };
        if query.newest_first {
            to = Some(to.map_or_else(|| isk.clone(), |to| to.min(isk.clone())));
        } else {
            from = from.max(isk.clone());
        }
        Self { from, to: to.into(), beyond: [isk, key.partition, key.sort].map(Bound::Text) }
    }

    /// Where a first page starts: before every key in its direction. No key is empty.
    fn before_all(newest_first: bool) -> [Bound; 3] {
        if newest_first {
            [Bound::Nothing, Bound::Nothing, Bound::Nothing]
        } else {
            ["", "", ""].map(|empty| Bound::Text(empty.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_after_a_prefix_follows_all_that_start_with_it() {
        let last = char::MAX;
        let cases = [
            ("", None),
            ("a", Some("b".to_owned())),
            ("az", Some("a{".to_owned())),
            ("\u{d7ff}", Some("\u{e000}".to_owned())),
            (&format!("a{last}"), Some("b".to_owned())),
            (&format!("{last}{last}"), None),
        ];
        for (prefix, want) in cases {
            assert_eq!(after_prefix(prefix), want, "{prefix:?}");
        }
    }
}
