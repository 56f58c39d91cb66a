//! `chaos`: seeds of the chaos harness on all cores.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use osprey_tests::chaos::{self, Breakage};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|at| args.get(at + 1)).cloned();
    let seeds: u64 = value("--seeds").and_then(|v| v.parse().ok()).unwrap_or(1000);
    let first: u64 = value("--first").and_then(|v| v.parse().ok()).unwrap_or(0);
    let threads: u64 = value("--threads").and_then(|v| v.parse().ok()).unwrap_or(2);
    if args.iter().any(|a| a == "--trace") {
        let planted = value("--breakage").and_then(|n| Breakage::named(&n));
        let o = chaos::run_seed(first, planted, true);
        println!("{}", o.story.unwrap_or_default());
        println!("{:?} hash {:x} settled {:?} batch {} extras {}", o.violation, o.hash, o.settled_ms, o.batch_jobs, o.extras);
        return ExitCode::SUCCESS;
    }
    let next = AtomicU64::new(first);
    let failed = Mutex::new(Vec::new());
    let stats = Mutex::new((0i64, 0usize, 0usize));
    let began = std::time::Instant::now();
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= first + seeds { return; }
                let o = chaos::run_seed(seed, None, false);
                let mut st = stats.lock().unwrap();
                st.0 = st.0.max(o.settled_ms.unwrap_or(0)); st.1 += o.batch_jobs; st.2 += o.extras;
                drop(st);
                if let Some(v) = o.violation { println!("seed {seed}: {v}"); failed.lock().unwrap().push(seed); }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    let st = stats.into_inner().unwrap();
    println!("settled max {} s, batch jobs {}, extras {}, {:.1} seeds/s", st.0/1000, st.1, st.2, seeds as f64 / began.elapsed().as_secs_f64());
    println!("chaos: {} passed, {} failed", seeds - failed.len() as u64, failed.len());
    ExitCode::SUCCESS
}
