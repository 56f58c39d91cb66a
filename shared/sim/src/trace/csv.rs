//! CSV traces: a header line, then one job a line.
//!
//! `id`, `submit`, `duration` and `gpus` must be there; times are seconds. Metadata comes from columns named like its
//! keys (`environment`, `workload_type`, `preemptible`, …), failures from `failure_count`, the team also from `tenant`,
//! the row's own number from `priority` where no other column was named.
//! Other columns are ignored.

use osprey_model::metadata::{Key, Metadata, parse_duration, parse_flag, parse_size};

use super::{BadLine, Entry, Trace, seconds};

/// The greatest priority: Batch takes no greater one.
const PRIORITY_MAX: u32 = 9999;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Id,
    Submit,
    Duration,
    Gpus,
    Failures,
    Priority,
    /// A column that is called so, and that nobody asked for: what isn't a number in it says nothing.
    OwnPriority,
    Meta(Key),
    Other,
}

/// Reads a CSV trace. `priority` names the column that holds the numbers, when they aren't to be derived.
///
/// # Errors
/// When the header lacks a column that must be there.
pub fn read(text: &str, priority: Option<&str>) -> Result<Trace, BadLine> {
    let mut lines = (1_u64..).zip(text.trim_start_matches('\u{feff}').lines());
    let header = lines.find(|(_, line)| !line.trim().is_empty());
    let (at, header) = header.ok_or_else(|| BadLine { line: 1, message: "there is no header line".to_owned() })?;
    let columns = columns(header, priority).map_err(|message| BadLine { line: at, message })?;
    let mut trace = Trace::default();
    for (line, text) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        match entry(line, text, &columns) {
            Ok(entry) => trace.entries.push(entry),
            Err(message) => trace.bad.push(BadLine { line, message }),
        }
    }
    Ok(trace)
}

fn columns(header: &str, priority: Option<&str>) -> Result<Vec<Column>, String> {
    let names = fields(header)?;
    let columns: Vec<Column> = names.iter().map(|name| column(name.trim(), priority)).collect();
    let needed =
        [(Column::Id, "id"), (Column::Submit, "submit"), (Column::Duration, "duration"), (Column::Gpus, "gpus")];
    if let Some((_, name)) = needed.iter().find(|(needed, _)| !columns.contains(needed)) {
        return Err(format!("there is no column `{name}`; the header is `{header}`"));
    }
    match priority {
        Some(name) if !columns.contains(&Column::Priority) => {
            Err(format!("there is no column `{name}`; the header is `{header}`"))
        }
        _ => Ok(columns),
    }
}

fn column(name: &str, priority: Option<&str>) -> Column {
    if priority == Some(name) {
        return Column::Priority;
    }
    match name {
        "id" => Column::Id,
        "submit" => Column::Submit,
        "duration" => Column::Duration,
        "gpus" => Column::Gpus,
        "failure_count" | "failures" => Column::Failures,
        "tenant" => Column::Meta(Key::Team),
        "priority" if priority.is_none() => Column::OwnPriority,
        _ => Key::of(name).map_or(Column::Other, Column::Meta),
    }
}

fn entry(line: u64, text: &str, columns: &[Column]) -> Result<Entry, String> {
    let fields = fields(text)?;
    if fields.len() != columns.len() {
        return Err(format!("it has {} fields, the header has {}", fields.len(), columns.len()));
    }
    let mut entry = Entry { line, ..Entry::default() };
    for (column, field) in columns.iter().zip(&fields) {
        set(&mut entry, *column, field.trim())?;
    }
    Ok(entry)
}

fn set(entry: &mut Entry, column: Column, field: &str) -> Result<(), String> {
    match column {
        Column::Id if field.is_empty() => return Err("its `id` is empty".to_owned()),
        Column::Id => field.clone_into(&mut entry.id),
        Column::Submit => entry.submit_ms = time("submit", field)?,
        Column::Duration => entry.duration_ms = time("duration", field)?,
        Column::Gpus => entry.gpus = gpus(field)?,
        Column::Failures => entry.failures = number("failure_count", field)?,
        Column::Priority => entry.priority = Some(priority(field)?),
        Column::OwnPriority => entry.priority = priority(field).ok(),
        Column::Meta(key) => meta(&mut entry.metadata, key, field)?,
        Column::Other => {}
    }
    Ok(())
}

fn time(name: &str, field: &str) -> Result<u64, String> {
    seconds(field).ok_or_else(|| format!("its `{name}` is `{field}`; seconds from 0 up are meant"))
}

fn gpus(field: &str) -> Result<u32, String> {
    let gpus = field.parse().ok().filter(|gpus| *gpus > 0);
    gpus.ok_or_else(|| format!("its `gpus` is `{field}`; a whole number from 1 up is meant"))
}

fn number(name: &str, field: &str) -> Result<u32, String> {
    field.parse().map_err(|_| format!("its `{name}` is `{field}`; a whole number from 0 up is meant"))
}

fn priority(field: &str) -> Result<u32, String> {
    let number = field.parse().ok().filter(|number| *number <= PRIORITY_MAX);
    number.ok_or_else(|| format!("its priority is `{field}`; a whole number from 0 to {PRIORITY_MAX} is meant"))
}

/// Takes what says something of the job. Keys that nothing here looks at are left out.
fn meta(metadata: &mut Metadata, key: Key, field: &str) -> Result<(), String> {
    if field.is_empty() {
        return Ok(());
    }
    let word = || Some(field.to_lowercase());
    let fault = || format!("its `{}` is `{field}`, which can't be read", key.name());
    let duration = || parse_duration(field).map(Some).map_err(|_| fault());
    match key {
        Key::Team => metadata.team = word(),
        Key::Environment => metadata.environment = word(),
        Key::Workload => metadata.workload = word(),
        Key::PriorityClass => metadata.priority_class = word(),
        Key::Project => metadata.project = Some(field.to_owned()),
        Key::User => metadata.user = Some(field.to_owned()),
        Key::Preemptible => metadata.preemptible = Some(parse_flag(field).ok_or_else(fault)?),
        Key::MaxDuration => metadata.max_duration = duration()?,
        Key::ExpectedDuration => metadata.expected_duration = duration()?,
        Key::CheckpointInterval => metadata.checkpoint_interval = duration()?,
        Key::DatasetSize => metadata.dataset_size = Some(parse_size(field).map_err(|_| fault())?),
        _ => {}
    }
    Ok(())
}

/// The fields of a line. A field in quotes may hold commas; a quote inside it is written twice.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    while let Some(character) = characters.next() {
        let Some(field) = fields.last_mut() else { break };
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if is_quoted || field.is_empty() => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            other => field.push(other),
        }
    }
    if is_quoted { Err("a quote is never closed".to_owned()) } else { Ok(fields) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(text: &str) -> Vec<(u64, String)> {
        read(text, None).unwrap().bad.into_iter().map(|bad| (bad.line, bad.message)).collect()
    }

    #[test]
    fn a_row_becomes_a_job_with_its_metadata() {
        let text = "id,submit,duration,gpus,environment,workload_type,preemptible,failure_count,tenant,number,colour\n\
                    7,10,2.5,8,Production,inference,1,3,4,950,blue\n";
        let trace = read(text, Some("number")).unwrap();
        let [entry] = trace.entries.as_slice() else { panic!("{trace:?}") };
        assert_eq!((entry.line, entry.id.as_str(), entry.submit_ms, entry.duration_ms), (2, "7", 10_000, 2_500));
        assert_eq!((entry.gpus, entry.failures, entry.priority), (8, 3, Some(950)));
        assert_eq!(entry.metadata.environment.as_deref(), Some("production"));
        assert_eq!(entry.metadata.workload.as_deref(), Some("inference"));
        assert_eq!((entry.metadata.preemptible, entry.metadata.team.as_deref()), (Some(true), Some("4")));
    }

    #[test]
    fn bad_lines_are_told_by_number_and_the_rest_is_read() {
        let text = "id,submit,duration,gpus\n1,0,5,1\n2,x,5,1\n\n3,0,5\n4,0,5,0\n,0,5,1\n\"5,0,5,1\n6,0,5,1";
        let trace = read(text, None).unwrap();
        assert_eq!(trace.entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["1", "6"]);
        let want = [
            (3, "its `submit` is `x`; seconds from 0 up are meant"),
            (5, "it has 3 fields, the header has 4"),
            (6, "its `gpus` is `0`; a whole number from 1 up is meant"),
            (7, "its `id` is empty"),
            (8, "a quote is never closed"),
        ];
        assert_eq!(bad(text), want.map(|(line, message)| (line, message.to_owned())));
    }

    #[test]
    fn a_header_without_a_needed_column_says_which() {
        let fault = |text, priority| read(text, priority).unwrap_err().message;
        let header = "id,submit,duration";
        assert_eq!(fault(header, None), "there is no column `gpus`; the header is `id,submit,duration`");
        let header = "id,submit,duration,gpus";
        assert_eq!(fault(header, Some("p")), "there is no column `p`; the header is `id,submit,duration,gpus`");
        assert_eq!(fault("", None), "there is no header line");
    }

    #[test]
    fn quotes_may_hold_commas() {
        assert_eq!(fields("a,\"b,\"\"c\"\"\",,d\r").unwrap(), ["a", "b,\"c\"", "", "d"]);
    }
}
