//! The counter of tokens: processes that know nothing of each other keep one rate.

use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use osprey_aws::SubmitTokens;

use crate::dynamodb::{fresh, table};
use crate::support::{clients, dynamodb_endpoint, run};

/// A limiter as AWS's are: it holds `rate` tokens, and `rate` more come in each second.
struct Limiter {
    rate: f64,
    tokens: f64,
    at: Instant,
    throttled: u32,
}

impl Limiter {
    fn new(rate: f64) -> Self {
        Self { rate, tokens: rate, at: Instant::now(), throttled: 0 }
    }

    fn call(&mut self) {
        let now = Instant::now();
        let come = now.duration_since(self.at).as_secs_f64() * self.rate;
        self.tokens = (self.tokens + come).min(self.rate);
        self.at = now;
        if self.tokens < 1.0 {
            self.throttled += 1;
        } else {
            self.tokens -= 1.0;
        }
    }
}

#[test]
fn four_processes_with_a_share_of_50_hold_48_to_50_a_second_and_trip_nothing() {
    let Some(endpoint) = dynamodb_endpoint("the counter's rate") else { return };
    let span = Duration::from_secs(20);
    let name = fresh("counter");
    run(async { table(&clients(&endpoint, "test", "test").await, &name).await });
    let limiter = Arc::new(Mutex::new(Limiter::new(50.0)));
    // What is measured is the rate, and not how long clients take to be made.
    let ready = Arc::new(Barrier::new(4));
    let processes: Vec<_> = (0..4)
        .map(|_| {
            let (endpoint, name, limiter, ready) = (endpoint.clone(), name.clone(), limiter.clone(), ready.clone());
            std::thread::spawn(move || {
                run(async {
                    let client = clients(&endpoint, "test", "test").await.dynamodb;
                    let tokens = SubmitTokens::new(client, name, 50);
                    let mut calls = 0_u32;
                    ready.wait();
                    let began = Instant::now();
                    while began.elapsed() < span {
                        if tokens.take().await {
                            if began.elapsed() >= span {
                                break;
                            }
                            limiter.lock().unwrap().call();
                            calls += 1;
                        } else {
                            tokio::time::sleep(Duration::from_millis(20)).await;
                        }
                    }
                    calls
                })
            })
        })
        .collect();
    let each: Vec<u32> = processes.into_iter().map(|process| process.join().unwrap()).collect();
    let (calls, time) = (f64::from(each.iter().sum::<u32>()), span.as_secs_f64());
    let throttled = limiter.lock().unwrap().throttled;
    eprintln!("{:.2} calls a second by {each:?} in {time:.1} s, {throttled} throttled", calls / time);
    assert!((48.0..=50.0).contains(&(calls / time)), "{:.2} a second", calls / time);
    assert!(f64::from(throttled) / calls < 0.001, "{throttled} of {calls} were throttled");
    assert!(each.iter().all(|calls| *calls > 0), "everybody gets some: {each:?}");
}
