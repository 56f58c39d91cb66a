//! Queues by their names, and documents.

use osprey_local::{Database, LocalDocuments, Outgoing, Place, StateDir};

use crate::scratch::{Bench, Scratch};

fn text(body: &str) -> Outgoing<'_> {
    Outgoing { body, delay_seconds: 0, extras: None }
}

fn plain(name: &str) -> Place {
    Place { name: name.to_owned(), dead: None }
}

#[test]
fn what_a_message_has_beside_its_text_comes_back() {
    let queues = Bench::new().queues;
    queues.send_to("mine", &Outgoing { extras: Some("{\"a\":1}"), ..text("x") }).unwrap();
    let [delivery] = queues.receive_from(&plain("mine"), 1, 30).unwrap().try_into().unwrap();
    assert_eq!(delivery.extras.as_deref(), Some("{\"a\":1}"));
    assert!(queues.holds("mine", &delivery.receipt).unwrap());
    assert!(queues.delete_from("mine", &delivery.receipt).unwrap());
    assert!(!queues.holds("mine", &delivery.receipt).unwrap());
}

#[test]
fn a_message_goes_to_the_dead_letters_that_its_queue_names_and_is_redriven_to_where_it_came_from() {
    let bench = Bench::new();
    let queues = &bench.queues;
    let place = Place { dead: Some(("mine-dead".to_owned(), 1)), ..plain("mine") };
    let first = queues.send_to("mine", &text("x")).unwrap();
    assert_eq!(queues.receive_from(&place, 1, 5).unwrap().len(), 1);
    bench.pass(5);
    assert_eq!(queues.receive_from(&place, 1, 5).unwrap(), []);
    assert_eq!(queues.counts_of("mine-dead").unwrap().visible, 1);
    assert_eq!(queues.redrive("mine-dead", None).unwrap(), 1);
    let [again] = queues.receive_from(&place, 1, 5).unwrap().try_into().unwrap();
    assert_ne!(again.message.id, first, "as in SQS, a redriven message has a new id");
    assert_eq!((again.message.body.as_str(), again.message.receive_count, again.source), ("x", 1, None));
}

#[test]
fn a_purge_empties_one_queue() {
    let queues = Bench::new().queues;
    queues.send_to("mine", &text("x")).unwrap();
    queues.send_to("other", &text("y")).unwrap();
    assert_eq!(queues.purge("mine").unwrap(), 1);
    assert_eq!((queues.counts_of("mine").unwrap().total(), queues.counts_of("other").unwrap().total()), (0, 1));
}

#[test]
fn documents_are_known_by_kind_and_name() {
    let documents = LocalDocuments::new(Bench::new().database);
    documents.put("a", "2", "{}").unwrap();
    documents.put("a", "1", "[]").unwrap();
    documents.put("b", "1", "1").unwrap();
    documents.put("a", "1", "[1]").unwrap();
    let names = |kind| documents.list(kind).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names("a"), ["1", "2"]);
    assert_eq!(documents.get("a", "1").unwrap().as_deref(), Some("[1]"));
    documents.delete("a", "1").unwrap();
    assert_eq!((documents.get("a", "1").unwrap(), names("b")), (None, vec!["1".to_owned()]));
}

#[test]
fn a_database_of_the_first_version_is_brought_forward_with_its_messages() {
    let scratch = Scratch::new();
    let state = StateDir::open(scratch.path()).unwrap();
    drop(Database::open(&state.database_path()).unwrap());
    let connection = rusqlite::Connection::open(state.database_path()).unwrap();
    let back = "DROP TABLE documents; ALTER TABLE messages DROP COLUMN extras;
                UPDATE meta SET value = 1 WHERE name = 'schema_version';
                INSERT INTO messages (queue, id, body, sender, sent_at, visible_at)
                    VALUES ('mine', 'f2d1a1a0-0000-4000-8000-000000000000', 'x', '0:root', 0, 0);";
    connection.execute_batch(back).unwrap();
    drop(connection);
    let bench = Bench::new();
    let database = std::sync::Arc::new(Database::open(&state.database_path()).unwrap());
    let queues = osprey_local::LocalQueues::new(database, bench.clock.clone());
    let [delivery] = queues.receive_from(&plain("mine"), 1, 30).unwrap().try_into().unwrap();
    assert_eq!((delivery.message.body.as_str(), delivery.extras), ("x", None));
}
