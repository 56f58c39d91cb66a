//! Notices: one for each key, and only what SNS would take.

use osprey_local::{KeptNotice, LocalNotify};
use osprey_ports::{CallError, Notice, Notify};

use crate::scratch::{Bench, ready, second};

fn notice(key: &str, subject: &str) -> Notice {
    Notice { key: key.into(), subject: subject.into(), text: "the whole story".into() }
}

fn topic(bench: &Bench) -> LocalNotify {
    LocalNotify::new(bench.database.clone(), bench.clock.clone())
}

#[test]
fn a_notice_is_kept_once_a_key() {
    let bench = Bench::new();
    let topic = topic(&bench);
    ready(topic.notify(&notice("job 1", "first"))).unwrap();
    bench.pass(5);
    ready(topic.notify(&notice("job 1", "again"))).unwrap();
    ready(topic.notify(&notice("job 2", "other"))).unwrap();
    let want = [
        KeptNotice { notice: notice("job 1", "first"), at: second(1_000) },
        KeptNotice { notice: notice("job 2", "other"), at: second(1_005) },
    ];
    assert_eq!(topic.notices().unwrap(), want);
}

#[test]
fn a_subject_that_the_topic_would_not_take_is_refused() {
    let topic = topic(&Bench::new());
    topic.keep(&notice("longest", &"é".repeat(100))).unwrap();
    let cases = [
        ("é".repeat(101), "a subject of 101 characters is not from 1 to 100"),
        (String::new(), "a subject of 0 characters is not from 1 to 100"),
        ("a\nb".to_owned(), "the subject holds a control character or a line break"),
    ];
    for (subject, want) in cases {
        assert_eq!(topic.keep(&notice("k", &subject)), Err(CallError::Refused(want.to_owned())));
    }
}

#[test]
fn a_text_that_the_topic_would_not_take_is_refused() {
    let topic = topic(&Bench::new());
    let text = |bytes| Notice { text: "x".repeat(bytes), ..notice("k", "s") };
    topic.keep(&text(262_144)).unwrap();
    let want = "a notice of 262145 bytes is not from 1 to 262144";
    assert_eq!(topic.keep(&text(262_145)), Err(CallError::Refused(want.to_owned())));
}
