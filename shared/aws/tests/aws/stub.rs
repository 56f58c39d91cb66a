//! A server on loopback that answers as told, and counts what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the stub does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Answers with this status, error code and body.
    Answer(u16, &'static str, String),
    /// Closes the connection once the whole request was read.
    HangUp,
    /// Closes the connection before anything is read.
    HangUpAtOnce,
    /// Sends the head of an answer and half of its body.
    HalfAnAnswer,
    /// Says nothing for longer than anybody waits.
    Silence,
}

impl Reply {
    pub fn error(status: u16, code: &'static str, message: &str) -> Self {
        Self::Answer(status, code, format!(r#"{{"message":"{message}","__type":"{code}"}}"#))
    }

    pub fn ok(body: &str) -> Self {
        Self::Answer(200, "", body.to_owned())
    }
}

/// The server.
pub struct Stub {
    pub endpoint: String,
    asked: Arc<AtomicU32>,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Stub {
    /// Answers with `replies` in turn, and with the last one from then on.
    pub fn new(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (asked, bodies) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(Vec::new())));
        let state = (replies, asked.clone(), bodies.clone());
        thread::spawn(move || {
            let (replies, asked, bodies) = state;
            for stream in listener.incoming().flatten() {
                let (replies, asked, bodies) = (replies.clone(), asked.clone(), bodies.clone());
                thread::spawn(move || serve(&stream, &replies, &asked, &bodies));
            }
        });
        Self { endpoint, asked, bodies }
    }

    /// How many requests, or connections that were closed before one.
    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }

    /// The bodies of the requests.
    pub fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, replies: &[Reply], asked: &AtomicU32, bodies: &Mutex<Vec<String>>) {
    let next = || replies[(asked.load(Ordering::SeqCst) as usize).min(replies.len() - 1)].clone();
    if matches!(next(), Reply::HangUpAtOnce) {
        asked.fetch_add(1, Ordering::SeqCst);
        return;
    }
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(body) = request(&mut reader) {
        let reply = next();
        asked.fetch_add(1, Ordering::SeqCst);
        bodies.lock().unwrap().push(body);
        if !answer(stream, &reply) {
            return;
        }
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

/// Sends the reply; `false` when the connection is over.
fn answer(mut stream: &TcpStream, reply: &Reply) -> bool {
    match reply {
        Reply::Answer(status, code, body) => {
            let kind = if code.is_empty() { String::new() } else { format!("x-amzn-errortype: {code}\r\n") };
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{kind}content-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).is_ok()
        }
        Reply::HalfAnAnswer => {
            let _ = stream.write_all(
                b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 80\r\n\r\n{\"jobId\":",
            );
            false
        }
        Reply::HangUp | Reply::HangUpAtOnce => false,
        Reply::Silence => {
            thread::sleep(Duration::from_secs(8));
            false
        }
    }
}
