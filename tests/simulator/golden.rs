//! Identity with the expected schedules: the same trace and policy give the same start and end for every job.
//!
//! One test a file, named like it. `traces/README.md` says where the files come from and how the hashes were made.

#![expect(non_snake_case, reason = "a test is named like the file that it is about")]

use osprey_sim::replay::{self, Setting};
use osprey_sim::strategy::Reference;
use sha2::{Digest as _, Sha256};

use crate::traces::{Checked, all_expected, canonical, cluster, file, workload};

/// The threshold that the `dive` schedules were made with.
const DIVE_ABOVE: u32 = 800;

/// Replays what a file says and compares.
fn identical(name: &str) -> Checked {
    let all = all_expected()?;
    let Some((_, want)) = all.iter().find(|(file, _)| file == name) else {
        return Err(format!("{name} is no file of expected.csv").into());
    };
    let strategy = Reference::named(&want.strategy).ok_or("no such strategy")?;
    let workload = workload(&want.trace)?;
    assert_eq!(workload.jobs.len(), want.jobs, "jobs of {}", want.trace);
    let cluster = cluster(&want.trace, want.placement);
    let schedule = replay::run(&workload, strategy, DIVE_ABOVE, &Setting::of(&cluster));
    let got = canonical(&workload, &schedule)?;
    let digest: String = Sha256::digest(got.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, want.sha256, "{name}: {}", first_difference(&want.trace, &want.strategy, &got));
    Ok(())
}

/// The first job that differs, where the whole schedule is at hand.
fn first_difference(trace: &str, strategy: &str, got: &str) -> String {
    let Ok(want) = file(&format!("expected/{trace}-{strategy}-count.csv")) else {
        return "the hash differs".to_owned();
    };
    let lines = want.lines().skip(1).zip(got.lines());
    let different = lines.into_iter().find(|(want, got)| want != got);
    different.map_or_else(String::new, |(want, got)| format!("first difference: {want} expected, {got} got"))
}

/// A test for each file, and a list of them.
macro_rules! identical {
    ($($test:ident)*) => {
        $(
            #[test]
            fn $test() -> Checked {
                identical(concat!(stringify!($test), ".csv"))
            }
        )*

        const TESTED: &[&str] = &[$(concat!(stringify!($test), ".csv")),*];
    };
}

identical! {
    helios_itp_c06_n12_fifo_consolidate
    helios_itp_c06_n12_sjf_consolidate
    pyss_itp_c06_EasyBackfillScheduler
    pyss_itp_c06_FcfsScheduler
    ref_itp_c06_easy
    ref_itp_c06_fcfs
    ref_itp_c06_fjf
    ref_itp_c06_node_fifo
    ref_itp_c06_node_sjf
    ref_itp_c06_prio
    ref_itp_c06_prio_easy
    ref_itp_c06_prio_preempt
    ref_itp_c06_seed_dive
    ref_itp_c06_sjf
    ref_itp_c06_srtf
    ref_itp_c10_easy
    ref_itp_c10_fcfs
    ref_itp_c10_fjf
    ref_itp_c10_node_fifo
    ref_itp_c10_node_sjf
    ref_itp_c10_sjf
    ref_itp_c10_srtf
    ref_itp_mix256_easy
    ref_itp_mix256_fcfs
    ref_itp_mix256_fjf
    ref_itp_mix256_node_fifo
    ref_itp_mix256_node_sjf
    ref_itp_mix256_prio
    ref_itp_mix256_prio_easy
    ref_itp_mix256_prio_preempt
    ref_itp_mix256_seed_dive
    ref_itp_mix256_sjf
    ref_itp_mix256_srtf
    tiresias_itp_c06_count_fifo
    tiresias_itp_c06_count_shortest
}

#[test]
fn no_expected_file_is_forgotten() -> Checked {
    let names: Vec<String> = all_expected()?.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, TESTED);
    Ok(())
}

#[test]
fn whole_schedules_have_the_hashes_that_stand_for_them() -> Checked {
    for (name, want) in all_expected()?.iter().filter(|(name, _)| name.starts_with("ref_itp_c10_")) {
        let placement = if name.contains("_node_") { "node" } else { "count" };
        let rows = file(&format!("expected/{}-{}-{placement}.csv", want.trace, want.strategy))?;
        let rows: String = rows.lines().skip(1).map(|line| format!("{line}\n")).collect();
        let digest: String = Sha256::digest(rows.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, want.sha256, "{name}");
    }
    Ok(())
}
