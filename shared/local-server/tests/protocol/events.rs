//! Events on their way to an HTTP address.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use osprey_local::Outgoing;
use osprey_local_server::{EventTarget, Forwarder};

use crate::bench::Bench;

/// Takes one request and answers it; gives its body.
fn take(listener: &TcpListener, answer: &str) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let text = whole(&mut stream);
    write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}

fn whole(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut part = [0; 4096];
    loop {
        let read = stream.read(&mut part).unwrap();
        text.extend(&part[..read]);
        let text = String::from_utf8_lossy(&text);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                return text.into_owned();
            }
        }
    }
}

#[test]
fn an_event_is_posted_until_it_is_taken() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/events", listener.local_addr().unwrap());
    let target = EventTarget::parse(&url).unwrap();
    let outgoing = Outgoing { body: "{\"a\":1}", delay_seconds: 0, extras: None };
    bench.world.queues().send_to(&target.queue(), &outgoing).unwrap();
    let forwarder = Forwarder::start(&bench.world, &target).unwrap();
    assert_eq!(take(&listener, "500 Internal Server Error"), "{\"a\":1}");
    assert_eq!(take(&listener, "204 No Content"), "{\"a\":1}");
    let queues = bench.world.queues();
    for _ in 0..200 {
        if queues.counts_of(&target.queue()).unwrap().total() == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(queues.counts_of(&target.queue()).unwrap().total(), 0);
    drop(forwarder);
}

#[test]
fn a_target_that_is_a_queue_needs_nobody_to_post() {
    let bench = Bench::new();
    let target = EventTarget::parse("sqs:mine").unwrap();
    assert!(Forwarder::start(&bench.world, &target).unwrap().is_none());
}
