//! The queues, as SQS's standard queues behave.

use jiff::Timestamp;
use osprey_local::{Database, DatabaseOptions, Delivery, LocalQueues, QueueCounts, Receipt};
use osprey_ports::{CallError, QueueKind, SendMessage};

use crate::scratch::{Bench, Scratch, ready, second};

const QUEUE: QueueKind = QueueKind::Submissions;
const DEAD: QueueKind = QueueKind::SubmissionsDead;

fn receive_one(queues: &LocalQueues, queue: QueueKind) -> Option<Delivery> {
    queues.receive(queue, 1, 30).unwrap().pop()
}

fn bodies(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.message.body.as_str()).collect()
}

fn refused<T>(result: Result<T, CallError>) -> String {
    match result {
        Err(CallError::Refused(sentence)) => sentence,
        Err(other) => panic!("not a refusal: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

#[test]
fn a_message_is_received_as_it_was_sent() {
    let bench = Bench::new();
    let queues = bench.queues.with_sender("1000:ada");
    let id = ready(queues.send_message(QUEUE, "é\u{1f9a4}\t\n\r", 0)).unwrap();
    bench.clock.set(second(1_007));
    let delivery = receive_one(&queues, QUEUE).unwrap();
    let message = &delivery.message;
    assert_eq!(
        (&message.id, message.body.as_str(), message.sender.principal.as_str()),
        (&id, "é\u{1f9a4}\t\n\r", "1000:ada")
    );
    assert_eq!((message.sent_at, message.receive_count), (second(1_000), 1));
    assert_eq!((delivery.first_received_at, delivery.source), (second(1_007), None));
}

#[test]
fn whoever_looks_at_a_queue_takes_nothing_from_it() {
    let queues = Bench::new().queues;
    for body in ["a", "b", "c"] {
        queues.send(QUEUE, body, 0).unwrap();
    }
    let seen = queues.peek(QUEUE, 2).unwrap();
    assert_eq!(seen.iter().map(|message| message.body.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(bodies(&queues.receive(QUEUE, 10, 30).unwrap()), ["a", "b", "c"]);
    assert_eq!(queues.peek(QUEUE, 10).unwrap().len(), 3, "what is in flight is there too");
}

#[test]
fn message_ids_are_uuids() {
    let queues = Bench::new().queues;
    let id = queues.send(QUEUE, "1", 0).unwrap();
    assert!(uuid::Uuid::try_parse(id.as_str()).is_ok());
    assert_ne!(id, queues.send(QUEUE, "1", 0).unwrap(), "the same text twice is two messages");
}

#[test]
fn a_message_belongs_to_one_queue() {
    let queues = Bench::new().queues;
    for queue in QueueKind::ALL {
        queues.send(queue, queue.name(), 0).unwrap();
    }
    for queue in QueueKind::ALL {
        assert_eq!(bodies(&queues.receive(queue, 10, 30).unwrap()), [queue.name()]);
    }
}

#[test]
fn a_received_message_is_hidden_until_its_time_out_and_comes_again() {
    let bench = Bench::new();
    bench.queues.send(QUEUE, "1", 0).unwrap();
    let first = receive_one(&bench.queues, QUEUE).unwrap();
    bench.pass(29);
    assert_eq!(receive_one(&bench.queues, QUEUE), None);
    bench.pass(1);
    let second_time = receive_one(&bench.queues, QUEUE).unwrap();
    assert_eq!(second_time.message.receive_count, 2);
    assert_eq!(second_time.message.id, first.message.id);
    assert_ne!(second_time.receipt, first.receipt);
    assert_eq!(second_time.first_received_at, second(1_000));
}

#[test]
fn a_deleted_message_never_comes_again() {
    let bench = Bench::new();
    bench.queues.send(QUEUE, "1", 0).unwrap();
    let delivery = receive_one(&bench.queues, QUEUE).unwrap();
    assert_eq!(bench.queues.delete(QUEUE, &delivery.receipt), Ok(true));
    assert_eq!(bench.queues.delete(QUEUE, &delivery.receipt), Ok(false), "to delete twice is no error");
    bench.pass(1_000);
    assert_eq!(receive_one(&bench.queues, QUEUE), None);
    assert_eq!(bench.queues.counts(QUEUE).unwrap(), QueueCounts::default());
}

#[test]
fn a_stale_receipt_deletes_nothing_and_hides_nothing() {
    let bench = Bench::new();
    let id = bench.queues.send(QUEUE, "1", 0).unwrap();
    let stale = receive_one(&bench.queues, QUEUE).unwrap().receipt;
    bench.pass(30);
    let latest = receive_one(&bench.queues, QUEUE).unwrap().receipt;
    assert_eq!(bench.queues.delete(QUEUE, &stale), Ok(false));
    let sentence = refused(bench.queues.change_visibility(QUEUE, &stale, 0));
    assert_eq!(sentence, format!("message `{id}` is not in flight under this receipt"));
    assert_eq!(bench.queues.delete(QUEUE, &latest), Ok(true));
}

#[test]
fn the_latest_receipt_deletes_even_after_its_time_out() {
    let bench = Bench::new();
    bench.queues.send(QUEUE, "1", 0).unwrap();
    let receipt = receive_one(&bench.queues, QUEUE).unwrap().receipt;
    bench.pass(60);
    assert_eq!(bench.queues.delete(QUEUE, &receipt), Ok(true));
}

#[test]
fn a_receipt_is_for_its_own_queue() {
    let bench = Bench::new();
    bench.queues.send(QUEUE, "1", 0).unwrap();
    let receipt = receive_one(&bench.queues, QUEUE).unwrap().receipt;
    assert_eq!(bench.queues.delete(QueueKind::Internal, &receipt), Ok(false));
}

#[test]
fn a_text_that_is_no_receipt_is_refused() {
    let queues = Bench::new().queues;
    for text in ["", "x", "x.y", "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000.z"] {
        let want = format!("`{text}` is no receipt handle");
        assert_eq!(refused(queues.delete(QUEUE, &Receipt::new(text))), want);
        assert_eq!(refused(queues.change_visibility(QUEUE, &Receipt::new(text), 1)), want);
    }
}

#[test]
fn a_delayed_message_is_seen_when_its_delay_has_passed() {
    let bench = Bench::new();
    bench.queues.send(QUEUE, "later", 900).unwrap();
    bench.pass(899);
    assert_eq!(receive_one(&bench.queues, QUEUE), None);
    assert_eq!(bench.queues.next_visible_at(QUEUE), Ok(Some(second(1_900))));
    bench.pass(1);
    assert!(receive_one(&bench.queues, QUEUE).is_some());
}

#[test]
fn visibility_can_be_made_longer_and_given_back() {
    let bench = Bench::new();
    bench.queues.send(QUEUE, "1", 0).unwrap();
    let receipt = receive_one(&bench.queues, QUEUE).unwrap().receipt;
    bench.pass(20);
    bench.queues.change_visibility(QUEUE, &receipt, 100).unwrap();
    bench.pass(99);
    assert_eq!(receive_one(&bench.queues, QUEUE), None);
    bench.queues.change_visibility(QUEUE, &receipt, 0).unwrap();
    assert_eq!(receive_one(&bench.queues, QUEUE).unwrap().message.receive_count, 2);
}

#[test]
fn the_visibility_of_a_message_that_timed_out_cannot_be_changed() {
    let bench = Bench::new();
    let id = bench.queues.send(QUEUE, "1", 0).unwrap();
    let receipt = receive_one(&bench.queues, QUEUE).unwrap().receipt;
    bench.pass(30);
    let want = format!("message `{id}` is not in flight under this receipt");
    assert_eq!(refused(bench.queues.change_visibility(QUEUE, &receipt, 10)), want);
}

#[test]
fn counts_tell_visible_delayed_and_in_flight_apart() {
    let bench = Bench::new();
    for (body, delay) in [("a", 0), ("b", 0), ("c", 0), ("d", 10), ("e", 10)] {
        bench.queues.send(QUEUE, body, delay).unwrap();
    }
    receive_one(&bench.queues, QUEUE).unwrap();
    let counts = bench.queues.counts(QUEUE).unwrap();
    assert_eq!(counts, QueueCounts { visible: 2, delayed: 2, in_flight: 1 });
    assert_eq!(counts.total(), 5);
    bench.pass(30);
    let want = QueueCounts { visible: 5, delayed: 0, in_flight: 0 };
    assert_eq!(bench.queues.counts(QUEUE).unwrap(), want);
}

#[test]
fn messages_happen_to_come_in_the_order_of_becoming_visible() {
    let bench = Bench::new();
    for (body, delay) in [("third", 2), ("first", 0), ("second", 1), ("fourth", 2)] {
        bench.queues.send(QUEUE, body, delay).unwrap();
    }
    bench.pass(2);
    let order = bench.queues.receive(QUEUE, 10, 30).unwrap();
    assert_eq!(bodies(&order), ["first", "second", "third", "fourth"]);
}

#[test]
fn a_receive_takes_no_more_than_asked_for() {
    let bench = Bench::new();
    for n in 0..12 {
        bench.queues.send(QUEUE, &n.to_string(), 0).unwrap();
    }
    let sizes: Vec<_> = [4, 10, 10].map(|max| bench.queues.receive(QUEUE, max, 30).unwrap().len()).into();
    assert_eq!(sizes, [4, 8, 0]);
}

#[test]
fn after_five_receives_a_message_goes_to_the_dead_letters_with_its_history() {
    let bench = Bench::new();
    let id = bench.queues.send(QUEUE, "poison", 0).unwrap();
    for count in 1..=5 {
        assert_eq!(receive_one(&bench.queues, QUEUE).unwrap().message.receive_count, count);
        bench.pass(30);
    }
    assert_eq!(receive_one(&bench.queues, QUEUE), None);
    assert_eq!(bench.queues.counts(QUEUE).unwrap().total(), 0);
    let dead = receive_one(&bench.queues, DEAD).unwrap();
    assert_eq!((&dead.message.id, dead.message.body.as_str()), (&id, "poison"));
    assert_eq!((dead.message.sent_at, dead.message.receive_count), (second(1_000), 6));
    assert_eq!((dead.first_received_at, dead.source), (second(1_000), Some(QUEUE.name().to_owned())));
}

#[test]
fn an_old_receipt_does_not_reach_into_the_dead_letters() {
    let bench = Bench::new();
    let queues = bench.queues.clone().with_receive_count_max(1);
    queues.send(QUEUE, "1", 0).unwrap();
    let receipt = receive_one(&queues, QUEUE).unwrap().receipt;
    bench.pass(30);
    assert_eq!(receive_one(&queues, QUEUE), None);
    for queue in [QUEUE, DEAD] {
        assert_eq!(queues.delete(queue, &receipt), Ok(false));
    }
    assert_eq!(queues.counts(DEAD).unwrap().visible, 1);
}

#[test]
fn a_dead_letter_queue_has_none_of_its_own() {
    let bench = Bench::new();
    let queues = bench.queues.clone().with_receive_count_max(1);
    queues.send(DEAD, "1", 0).unwrap();
    for count in 1..=9 {
        assert_eq!(receive_one(&queues, DEAD).unwrap().message.receive_count, count);
        bench.pass(30);
    }
}

#[test]
fn a_poison_message_does_not_block_the_others() {
    let bench = Bench::new();
    let queues = bench.queues.clone().with_receive_count_max(1);
    queues.send(QUEUE, "poison", 0).unwrap();
    receive_one(&queues, QUEUE).unwrap();
    bench.pass(30);
    queues.send(QUEUE, "good", 0).unwrap();
    assert_eq!(receive_one(&queues, QUEUE).unwrap().message.body, "good");
}

#[test]
fn a_consumer_that_dies_between_receive_and_delete_costs_a_redelivery_and_no_message() {
    let scratch = Scratch::new();
    let id = {
        let bench = Bench::on(Database::open(&scratch.file()).unwrap());
        bench.queues.send(QUEUE, "1", 0).unwrap();
        receive_one(&bench.queues, QUEUE).unwrap().message.id
    };
    let again = Bench::on(Database::open(&scratch.file()).unwrap());
    assert_eq!(receive_one(&again.queues, QUEUE), None);
    again.pass(30);
    let delivery = receive_one(&again.queues, QUEUE).unwrap();
    assert_eq!((delivery.message.id, delivery.message.receive_count), (id, 2));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let bench = Bench::new();
    let queues = &bench.queues;
    let cases = [
        (refused(queues.send(QUEUE, "1", 901)), "a delay of 901 seconds is over 900"),
        (refused(queues.receive(QUEUE, 0, 30)), "0 messages in one receive is not from 1 to 10"),
        (refused(queues.receive(QUEUE, 11, 30)), "11 messages in one receive is not from 1 to 10"),
        (refused(queues.receive(QUEUE, 1, 43_201)), "a visibility time-out of 43201 seconds is over 43200"),
    ];
    for (sentence, want) in cases {
        assert_eq!(sentence, want);
    }
    queues.send(QUEUE, "1", 900).unwrap();
    bench.pass(900);
    let receipt = queues.receive(QUEUE, 10, 43_200).unwrap().remove(0).receipt;
    let sentence = refused(queues.change_visibility(QUEUE, &receipt, 43_201));
    assert_eq!(sentence, "a visibility time-out of 43201 seconds is over 43200");
}

#[test]
fn a_message_of_one_mebibyte_is_taken_and_a_byte_more_is_refused() {
    let queues = Bench::new().queues;
    let longest = "é".repeat(512 * 1024);
    queues.send(QUEUE, &longest, 0).unwrap();
    assert_eq!(receive_one(&queues, QUEUE).unwrap().message.body, longest);
    let sentence = refused(queues.send(QUEUE, &format!("{longest}x"), 0));
    assert_eq!(sentence, "the message is 1048577 bytes long where the limit is 1048576");
    assert_eq!(refused(queues.send(QUEUE, "", 0)), "the message is empty");
}

#[test]
fn characters_that_xml_does_not_know_are_refused() {
    let queues = Bench::new().queues;
    for legal in ["\t\n\r", " ~\u{7f}\u{85}", "\u{d7ff}\u{e000}\u{fffd}", "\u{10000}\u{10ffff}"] {
        queues.send(QUEUE, legal, 0).unwrap();
    }
    for (body, name, at) in
        [("\0", "U+0000", 1), ("é\u{b}", "U+000B", 2), ("ab\u{1b}", "U+001B", 3), ("\u{ffff}", "U+FFFF", 1)]
    {
        let want = format!("the message holds a character that a queue doesn't take: {name} at character {at}");
        assert_eq!(refused(queues.send(QUEUE, body, 0)), want);
    }
}

#[test]
fn a_full_disk_refuses_a_message_in_one_sentence() {
    let scratch = Scratch::new();
    let options = DatabaseOptions { pages_max: Some(64), ..DatabaseOptions::default() };
    let bench = Bench::on(Database::open_with(&scratch.file(), &options).unwrap());
    let sentence = refused(bench.queues.send(QUEUE, &"x".repeat(500_000), 0));
    assert_eq!(sentence, format!("the disk that holds `{}` is full", scratch.file().display()));
    assert_eq!(bench.queues.counts(QUEUE).unwrap().total(), 0);
}

#[test]
fn a_clock_at_the_end_of_time_overflows_nothing() {
    let bench = Bench::new();
    bench.clock.set(Timestamp::MAX);
    bench.queues.send(QUEUE, "1", 900).unwrap();
    bench.queues.receive(QUEUE, 1, 43_200).unwrap();
}
