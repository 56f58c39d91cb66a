//! The submissions ledger: each line of a job file once.

use osprey_local::{Database, LedgerRow, Line, LineOutcome, LocalQueues};
use osprey_ports::QueueKind;

use crate::scratch::{Bench, Scratch};

pub fn lines(texts: &[&str]) -> Vec<Line> {
    (1..).zip(texts).map(|(number, text)| Line { number, text: (*text).to_owned() }).collect()
}

fn waiting(queues: &LocalQueues) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let some = queues.receive(QueueKind::Submissions, 10, 43_200).unwrap();
        if some.is_empty() {
            return all;
        }
        all.extend(some.into_iter().map(|delivery| delivery.message.body));
    }
}

#[test]
fn every_line_is_sent_and_its_message_is_on_record() {
    let queues = Bench::new().queues;
    let rows = queues.enqueue_lines("jobs", &lines(&["a", "b", "a"])).unwrap();
    let seen: Vec<_> = rows.iter().map(|row| (row.line, row.occurrence)).collect();
    assert_eq!(seen, [(1, 1), (2, 1), (3, 2)]);
    assert_eq!(rows[0].hash, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
    assert_eq!(queues.ledger("jobs").unwrap(), rows);
    let delivery = queues.receive(QueueKind::Submissions, 1, 30).unwrap().remove(0);
    assert_eq!(rows[0].outcome, LineOutcome::Sent(delivery.message.id));
}

#[test]
fn the_same_file_again_sends_nothing_and_answers_the_same() {
    let scratch = Scratch::new();
    let file = lines(&["a", "b", "a"]);
    let take_in = || {
        let bench = Bench::on(Database::open(&scratch.file()).unwrap());
        bench.queues.enqueue_lines("jobs", &file).unwrap()
    };
    let first = take_in();
    assert_eq!(take_in(), first);
    let bench = Bench::on(Database::open(&scratch.file()).unwrap());
    assert_eq!(waiting(&bench.queues), ["a", "b", "a"]);
}

#[test]
fn a_changed_file_sends_what_is_new() {
    let queues = Bench::new().queues;
    queues.enqueue_lines("jobs", &lines(&["a", "b"])).unwrap();
    waiting(&queues);
    let rows = queues.enqueue_lines("jobs", &lines(&["c", "b", "a", "a"])).unwrap();
    assert_eq!(waiting(&queues), ["c", "a"]);
    let seen: Vec<_> = rows.iter().map(|row| (row.line, row.occurrence)).collect();
    assert_eq!(seen, [(1, 1), (2, 1), (1, 1), (4, 2)], "rows keep the line number of their first time");
}

#[test]
fn two_files_with_equal_lines_are_two() {
    let queues = Bench::new().queues;
    for source in ["one", "two"] {
        queues.enqueue_lines(source, &lines(&["a"])).unwrap();
    }
    assert_eq!(waiting(&queues), ["a", "a"]);
    assert_eq!(queues.ledger("three").unwrap(), []);
}

#[test]
fn a_line_that_no_queue_takes_is_on_record_with_its_reason() {
    let queues = Bench::new().queues;
    let file = lines(&["a", "b\u{1}", "c"]);
    let rows = queues.enqueue_lines("jobs", &file).unwrap();
    let sentence = "the message holds a character that a queue doesn't take: U+0001 at character 2";
    assert_eq!(rows[1].outcome, LineOutcome::Refused(sentence.to_owned()));
    assert_eq!(queues.enqueue_lines("jobs", &file).unwrap(), rows);
    assert_eq!(waiting(&queues), ["a", "c"]);
}

#[test]
fn a_file_of_five_thousand_lines_is_one_transaction() {
    let queues = Bench::new().queues;
    let texts: Vec<String> = (0..5_000).map(|n| format!("{{\"jobName\":\"job-{n}\"}}")).collect();
    let file = lines(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let sent = |row: &LedgerRow| matches!(row.outcome, LineOutcome::Sent(_));
    assert!(queues.enqueue_lines("jobs", &file).unwrap().iter().all(sent));
    assert_eq!(queues.counts(QueueKind::Submissions).unwrap().visible, 5_000);
}
