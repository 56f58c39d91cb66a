//! Events to somebody else: a queue gets a copy of each event, and for an HTTP address a thread posts them from there.
//! At least once: an event is posted again until the address has answered with 2xx.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use osprey_local::{Delivery, LocalWorld, Place};
use osprey_ports::CallError;

use crate::sign;

/// How long an address may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the queue is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Virtual seconds until an event that wasn't taken is posted again: doubled with each try from the first to the last.
const AGAIN_SECONDS: (u32, u32) = (2, 60);
/// Events posted before the queue is looked at again.
const AT_A_TIME: usize = 10;

/// Where events go beside the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventTarget {
    /// A queue of this name.
    Queue(String),
    /// An HTTP address of this machine.
    Http(HttpTarget),
}

/// An HTTP address of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTarget {
    url: String,
    host: String,
    port: u16,
    path: String,
}

/// A target that can't be used; one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TargetError(String);

impl EventTarget {
    /// Reads `sqs:NAME` or `http://127.0.0.1:PORT/PATH`.
    ///
    /// # Errors
    /// A sentence for anything else.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        if let Some(name) = text.strip_prefix("sqs:") {
            return Ok(Self::Queue(name.to_owned()));
        }
        let wanted = || {
            let sentence = "is no event target: `http://127.0.0.1:PORT/PATH` or `sqs:QUEUE` is wanted";
            TargetError(format!("`{text}` {sentence}"))
        };
        let rest = text.strip_prefix("http://").ok_or_else(wanted)?;
        let (authority, path) = rest.find('/').and_then(|at| rest.split_at_checked(at)).unwrap_or((rest, "/"));
        let (host, port) = match authority.rsplit_once(':').filter(|_| !authority.ends_with(']')) {
            Some((host, port)) => (host, port.parse().map_err(|_| wanted())?),
            None => (authority, 80),
        };
        if !path.chars().all(|c| c.is_ascii_graphic()) {
            return Err(wanted());
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_here = bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if !is_here {
            return Err(TargetError(format!("`{host}` is not this machine: events are posted to the loopback only")));
        }
        Ok(Self::Http(HttpTarget { url: text.to_owned(), host: bare.to_owned(), port, path: path.to_owned() }))
    }

    /// Name of the queue that gets a copy of each event.
    #[must_use]
    pub fn queue(&self) -> String {
        match self {
            Self::Queue(name) => name.clone(),
            Self::Http(target) => {
                let sum: String = sign::sha256(target.url.as_bytes()).chars().take(12).collect();
                format!("event-target-{sum}")
            }
        }
    }
}

/// Posts events until it is dropped.
#[derive(Debug)]
pub struct Forwarder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Forwarder {
    /// Starts to post what comes into the queue of a target; `None` for a target that is a queue.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(world: &LocalWorld, target: &EventTarget) -> io::Result<Option<Self>> {
        let EventTarget::Http(address) = target.clone() else { return Ok(None) };
        let place = Place { name: target.queue(), dead: None };
        let (world, stop) = (world.clone(), Arc::new(AtomicBool::new(false)));
        let asked = Arc::clone(&stop);
        let forward = move || {
            while !asked.load(Ordering::Acquire) {
                match post_due(&world, &place, &address) {
                    Ok(0) => std::thread::sleep(LOOK_EVERY),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(%error, "Events can't be read for their target.");
                        std::thread::sleep(LOOK_EVERY);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("events".to_owned()).spawn(forward)?;
        Ok(Some(Self { stop, thread: Some(thread) }))
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Posts the events that are due, and says how many there were.
fn post_due(world: &LocalWorld, place: &Place, target: &HttpTarget) -> Result<usize, CallError> {
    let queues = world.queues();
    // Nobody else reads this queue, so an event that comes up again meanwhile is posted only after this round.
    let deliveries = queues.receive_from(place, AT_A_TIME, AGAIN_SECONDS.1)?;
    for delivery in &deliveries {
        match target.post(&delivery.message.body) {
            Ok(()) => drop(queues.delete_from(&place.name, &delivery.receipt)?),
            Err(error) => {
                tracing::warn!(url = target.url, %error, "An event was not taken.");
                // A virtual time so long that the event has come up again meanwhile needs no change.
                let _ = queues.hide_in(&place.name, &delivery.receipt, again_seconds(delivery));
            }
        }
    }
    Ok(deliveries.len())
}

fn again_seconds(delivery: &Delivery) -> u32 {
    let (first, last) = AGAIN_SECONDS;
    let doublings = delivery.message.receive_count.saturating_sub(1).min(16);
    first.saturating_mul(1 << doublings).min(last)
}

impl HttpTarget {
    /// Posts one event.
    fn post(&self, body: &str) -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&self.address()?, ANSWER_TIMEOUT)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {}:{}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.path,
            self.host,
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut line = Vec::new();
        let read = stream.take(512).read_to_end(&mut line);
        let text = String::from_utf8_lossy(&line);
        match text.split(' ').nth(1) {
            Some(status) if status.len() == 3 && status.starts_with('2') => Ok(()),
            Some(status) => Err(io::Error::other(format!("it answered {status}"))),
            None => Err(read.err().unwrap_or_else(|| io::Error::other("it gave no answer"))),
        }
    }

    /// Looked up again at each post; a name that leads elsewhere by now is refused.
    fn address(&self) -> io::Result<SocketAddr> {
        let found = (self.host.as_str(), self.port).to_socket_addrs()?.find(|address| address.ip().is_loopback());
        found.ok_or_else(|| io::Error::other("it is not on this machine"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        EventTarget::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn targets_are_queues_and_addresses_of_this_machine() {
        assert_eq!(EventTarget::parse("sqs:mine").map(|target| target.queue()), Ok("mine".to_owned()));
        for (text, host, port, path) in [
            ("http://127.0.0.1:8080/events?a=b", "127.0.0.1", 8080, "/events?a=b"),
            ("http://localhost", "localhost", 80, "/"),
            ("http://[::1]:99/", "::1", 99, "/"),
        ] {
            let Ok(EventTarget::Http(target)) = EventTarget::parse(text) else { panic!("{text}") };
            assert_eq!((target.host.as_str(), target.port, target.path.as_str()), (host, port, path));
        }
        assert_eq!(
            refusal("http://10.0.0.1/"),
            "`10.0.0.1` is not this machine: events are posted to the loopback only"
        );
        for wrong in ["https://127.0.0.1/", "mine", "http://127.0.0.1:x/", "http://127.0.0.1/a b"] {
            let want = format!("`{wrong}` is no event target: `http://127.0.0.1:PORT/PATH` or `sqs:QUEUE` is wanted");
            assert_eq!(refusal(wrong), want);
        }
    }
}
