//! A TOML document read by hand, so that one mistake doesn't hide the next.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::place::{Place, offset_in_string, place};
use osprey_model::message::words::{all_of, quote};
use osprey_model::metadata::parse_duration;

use crate::problem::{PolicyError, PolicyErrorCode, did_you_mean};

/// The greatest count; nobody means the limit of a machine word, so messages leave it out.
const COUNT_MAX: i64 = u32::MAX as i64;

/// A value with its path.
#[derive(Clone, Debug)]
pub(crate) struct Item<'t> {
    pub path: String,
    value: &'t Spanned<DeValue<'t>>,
}

/// A table with its path and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Table<'t> {
    pub path: String,
    pub span: Range<usize>,
    entries: &'t DeTable<'t>,
}

impl<'t> Table<'t> {
    /// The document itself.
    pub fn root(document: &'t Spanned<DeTable<'t>>) -> Self {
        Self { path: String::new(), span: 0..0, entries: document.get_ref() }
    }

    /// The value of a key, when it is there.
    pub fn item(&self, key: &str) -> Option<Item<'t>> {
        let value = self.entries.get(key)?;
        Some(Item { path: self.path_of(key), value })
    }

    /// Every key with its value.
    pub fn items(&self) -> impl Iterator<Item = (&'t str, Item<'t>)> {
        self.entries.iter().map(|(key, value)| {
            let key = key.get_ref().as_ref();
            (key, Item { path: self.path_of(key), value })
        })
    }

    /// Every key with where it stands.
    pub fn keys(&self) -> impl Iterator<Item = (&'t str, Range<usize>)> {
        self.entries.keys().map(|key| (key.get_ref().as_ref(), key.span()))
    }

    /// The path of a key of this table.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl<'t> Item<'t> {
    /// Where the value stands.
    pub fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// The text, when it is one.
    pub fn as_text(&self) -> Option<&'t str> {
        self.value.get_ref().as_str()
    }

    /// The table, when it is one.
    pub fn as_table(&self) -> Option<Table<'t>> {
        let entries = self.value.get_ref().as_table()?;
        Some(Table { path: self.path.clone(), span: self.span(), entries })
    }

    /// True or false, when it is that.
    pub fn as_bool(&self) -> Option<bool> {
        self.value.get_ref().as_bool()
    }

    /// The whole number, when it is one that 64 bits hold.
    pub fn as_integer(&self) -> Option<i64> {
        let number = self.value.get_ref().as_integer()?;
        i64::from_str_radix(number.as_str(), number.radix()).ok()
    }

    /// The number, whole or not, when it is one.
    pub fn as_number(&self) -> Option<f64> {
        let whole = self.value.get_ref().as_integer().and_then(|number| number.as_str().parse().ok());
        whole.or_else(|| self.value.get_ref().as_float()?.as_str().replace('_', "").parse().ok())
    }

    /// The date and time as written, when it is one.
    pub fn as_datetime(&self) -> Option<String> {
        self.value.get_ref().as_datetime().map(ToString::to_string)
    }

    /// The elements, when it is a list.
    pub fn as_list(&self) -> Option<Vec<Item<'t>>> {
        let list = self.value.get_ref().as_array()?;
        let at = |index: usize| format!("{}[{index}]", self.path);
        Some(list.iter().enumerate().map(|(index, value)| Item { path: at(index), value }).collect())
    }

    /// What the value is, with its article.
    fn kind(&self) -> &'static str {
        match self.value.get_ref() {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }
}

/// Reads values and collects what is wrong with them.
pub(crate) struct Reader<'t> {
    text: &'t str,
    pub errors: Vec<PolicyError>,
}

impl<'t> Reader<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, errors: Vec::new() }
    }

    /// The line and column of a byte offset.
    pub fn place(&self, offset: usize) -> Place {
        place(self.text, offset)
    }

    /// Records a mistake at a byte offset.
    pub fn error_at(
        &mut self,
        offset: usize,
        path: &str,
        code: PolicyErrorCode,
        message: String,
        help: Option<String>,
    ) {
        let place = place(self.text, offset);
        let path = path.to_owned();
        self.errors.push(PolicyError { path, line: place.line, column: place.column, code, message, help });
    }

    /// Records a mistake at a value.
    pub fn error(&mut self, item: &Item<'t>, code: PolicyErrorCode, message: String, help: Option<String>) {
        self.error_at(item.span().start, &item.path, code, message, help);
    }

    /// Records a mistake inside a text value, at an offset of its content.
    pub fn error_inside(
        &mut self,
        item: &Item<'t>,
        inner: usize,
        code: PolicyErrorCode,
        message: String,
        help: Option<String>,
    ) {
        let offset = offset_in_string(self.text, &item.span(), inner);
        self.error_at(offset, &item.path, code, message, help);
    }

    /// Refuses every key that isn't in the list.
    pub fn known_keys(&mut self, table: &Table<'t>, known: &[&str]) {
        for (key, span) in table.keys().filter(|(key, _)| !known.contains(key)) {
            let help = did_you_mean(key, known.iter().copied())
                .or_else(|| Some(format!("known here: {}", all_of(known.iter().copied()))));
            self.error_at(
                span.start,
                &table.path_of(key),
                PolicyErrorCode::UnknownKey,
                format!("unknown key {}", quote(key)),
                help,
            );
        }
    }

    /// Demands a key.
    pub fn required(&mut self, table: &Table<'t>, key: &str, help: &str) -> Option<Item<'t>> {
        let item = table.item(key);
        if item.is_none() {
            let path = table.path_of(key);
            let message = format!("`{key}` is missing");
            self.error_at(table.span.start, &path, PolicyErrorCode::MissingKey, message, Some(help.to_owned()));
        }
        item
    }

    fn wrong_type<T>(&mut self, item: &Item<'t>, wanted: &str) -> Option<T> {
        self.error(item, PolicyErrorCode::WrongType, format!("expected {wanted}, found {}", item.kind()), None);
        None
    }

    /// Any text.
    pub fn text(&mut self, item: &Item<'t>) -> Option<&'t str> {
        item.as_text().or_else(|| self.wrong_type(item, "text"))
    }

    /// Text that says something.
    pub fn name(&mut self, item: &Item<'t>) -> Option<&'t str> {
        let text = self.text(item)?;
        if text.trim().is_empty() {
            self.error(item, PolicyErrorCode::InvalidValue, "expected text, found blanks".to_owned(), None);
            return None;
        }
        Some(text)
    }

    /// True or false.
    pub fn boolean(&mut self, item: &Item<'t>) -> Option<bool> {
        item.as_bool().or_else(|| self.wrong_type(item, "true or false"))
    }

    /// A whole number in a range.
    pub fn integer(&mut self, item: &Item<'t>, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        if item.kind() != "a whole number" {
            let quoted = item.as_text().is_some_and(|text| text.parse::<f64>().is_ok());
            let help = quoted.then(|| "leave the quotes away".to_owned());
            let message = format!("expected a whole number, found {}", item.kind());
            self.error(item, PolicyErrorCode::WrongType, message, help);
            return None;
        }
        let number = item.as_integer().filter(|number| range.contains(number));
        if number.is_none() {
            let given = quote(self.text.get(item.span()).unwrap_or(""));
            let (start, end) = (range.start(), range.end());
            let message = match item.as_integer() {
                Some(number) if number < *start && *end == COUNT_MAX => format!("{given} is below {start}"),
                _ => format!("{given} is outside {start} to {end}"),
            };
            self.error(item, PolicyErrorCode::OutOfRange, message, None);
        }
        number
    }

    /// A whole number of 0 or more.
    pub fn count(&mut self, item: &Item<'t>) -> Option<u32> {
        self.integer(item, 0..=COUNT_MAX).and_then(|number| u32::try_from(number).ok())
    }

    /// A whole number of 1 or more.
    pub fn positive(&mut self, item: &Item<'t>) -> Option<u32> {
        self.integer(item, 1..=COUNT_MAX).and_then(|number| u32::try_from(number).ok())
    }

    /// A number in a range, in percent: 1.5 is 150.
    pub fn percent(&mut self, item: &Item<'t>, range: std::ops::RangeInclusive<f64>) -> Option<u32> {
        self.parts(item, range, 100.0)
    }

    /// A number in a range, in thousandths: 1.5 is 1500.
    pub fn thousandths(&mut self, item: &Item<'t>, range: std::ops::RangeInclusive<f64>) -> Option<u32> {
        self.parts(item, range, 1000.0)
    }

    /// A number in a range, times a factor and rounded.
    fn parts(&mut self, item: &Item<'t>, range: std::ops::RangeInclusive<f64>, factor: f64) -> Option<u32> {
        let Some(number) = item.as_number() else { return self.wrong_type(item, "a number") };
        if !range.contains(&number) {
            let message = format!("`{number}` is outside {} to {}", range.start(), range.end());
            self.error(item, PolicyErrorCode::OutOfRange, message, None);
            return None;
        }
        // Ranges are small; `as` can't go wrong here, and there is no other way from f64.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked above")]
        let parts = (number * factor).round() as u32;
        Some(parts)
    }

    /// A number of 0 or more, with or without a fraction.
    pub fn amount(&mut self, item: &Item<'t>) -> Option<f64> {
        let Some(number) = item.as_number() else { return self.wrong_type(item, "a number") };
        if !(number >= 0.0 && number.is_finite()) {
            let message = format!("`{number}` is no amount of 0 or more");
            self.error(item, PolicyErrorCode::OutOfRange, message, None);
            return None;
        }
        Some(number)
    }

    /// A duration in seconds.
    pub fn duration_seconds(&mut self, item: &Item<'t>) -> Option<u64> {
        let Some(text) = item.as_text() else { return self.wrong_type(item, "a duration in quotes") };
        match parse_duration(text) {
            Ok(seconds) => Some(seconds),
            Err(cause) => {
                let message = format!("{} is no duration: {cause}", quote(text));
                let help = Some("write it as `90s`, `15m`, `4h30m` or `PT4H`".to_owned());
                self.error(item, PolicyErrorCode::InvalidValue, message, help);
                None
            }
        }
    }

    /// A duration in milliseconds.
    pub fn duration_ms(&mut self, item: &Item<'t>) -> Option<u64> {
        self.duration_seconds(item).map(|seconds| seconds.saturating_mul(1000))
    }

    /// A duration of at least a second, in seconds.
    pub fn some_seconds(&mut self, item: &Item<'t>) -> Option<u64> {
        let seconds = self.duration_seconds(item)?;
        if seconds == 0 {
            self.error(item, PolicyErrorCode::OutOfRange, "it must be at least a second".to_owned(), None);
            return None;
        }
        Some(seconds)
    }

    /// A duration of at least a second, in milliseconds.
    pub fn some_ms(&mut self, item: &Item<'t>) -> Option<u64> {
        self.some_seconds(item).map(|seconds| seconds.saturating_mul(1000))
    }

    /// A table.
    pub fn table(&mut self, item: &Item<'t>) -> Option<Table<'t>> {
        item.as_table().or_else(|| self.wrong_type(item, "a table"))
    }

    /// A list.
    pub fn list(&mut self, item: &Item<'t>) -> Option<Vec<Item<'t>>> {
        item.as_list().or_else(|| self.wrong_type(item, "a list"))
    }

    /// A list of texts, each with its place.
    pub fn texts(&mut self, item: &Item<'t>) -> Vec<(Item<'t>, &'t str)> {
        let items = self.list(item).unwrap_or_default();
        items.into_iter().filter_map(|item| self.text(&item).map(|text| (item, text))).collect()
    }

    /// The tables of a `[[key]]`, in the order of the file.
    pub fn tables(&mut self, root: &Table<'t>, key: &str) -> Vec<Table<'t>> {
        let Some(item) = root.item(key) else { return Vec::new() };
        let Some(items) = item.as_list() else {
            let message = format!("expected a list of tables, found {}", item.kind());
            self.error(&item, PolicyErrorCode::WrongType, message, Some(format!("write `[[{key}]]`")));
            return Vec::new();
        };
        items.iter().filter_map(|item| self.table(item)).collect()
    }

    /// The table of a `[key]`, with its keys checked.
    pub fn section(&mut self, root: &Table<'t>, key: &str, known: &[&str]) -> Option<Table<'t>> {
        let item = root.item(key)?;
        let table = self.table(&item)?;
        self.known_keys(&table, known);
        Some(table)
    }
}
