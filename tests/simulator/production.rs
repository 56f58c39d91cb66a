//! The production decision on the same kernel: where it says the same as a reference strategy, job for job.

use osprey_scheduler::{Rules, Strategy};
use osprey_sim::cluster::Placement;
use osprey_sim::replay::{self, Setting};
use osprey_sim::strategy::Reference;

use crate::traces::{Checked, canonical, cluster, workload};

/// Whether a trace has one schedule both ways.
fn is_same(
    trace: &str,
    placement: Placement,
    production: Strategy,
    reference: Reference,
) -> Result<bool, Box<dyn std::error::Error>> {
    let (workload, cluster) = (workload(trace)?, cluster(trace, placement));
    let rules = Rules { strategy: production, ..Rules::default() };
    let decided = replay::run_decided(&workload, rules.into(), &Setting::of(&cluster));
    let expected = replay::run(&workload, reference, 800, &Setting::of(&cluster));
    Ok(canonical(&workload, &decided)? == canonical(&workload, &expected)?)
}

fn same(trace: &str, placement: Placement, production: Strategy, reference: Reference) -> Checked {
    assert!(
        is_same(trace, placement, production, reference)?,
        "{trace}: {} of decide and {} of the reference differ",
        production.name(),
        reference.name()
    );
    Ok(())
}

const SAME: [(Strategy, Reference); 3] =
    [(Strategy::Fifo, Reference::Fifo), (Strategy::Priority, Reference::Priority), (Strategy::Sjf, Reference::Sjf)];

#[test]
fn decide_gives_the_reference_schedules_of_fifo_priority_and_sjf() -> Checked {
    for trace in ["itp_c10", "itp_c06", "itp_mix256"] {
        for (production, reference) in SAME {
            same(trace, Placement::Count, production, reference)?;
        }
    }
    Ok(())
}

#[test]
fn decide_gives_the_reference_schedules_on_nodes_too() -> Checked {
    for (production, reference) in SAME {
        same("itp_c06", Placement::Node, production, reference)?;
    }
    Ok(())
}

#[test]
fn backfill_is_priority_with_easy_where_gpus_are_counted() -> Checked {
    for trace in ["itp_c10", "itp_c06", "itp_mix256"] {
        same(trace, Placement::Count, Strategy::Backfill, Reference::PriorityEasy)?;
    }
    Ok(())
}

#[test]
fn schedules_that_differ_are_told_apart() -> Checked {
    for trace in ["itp_c10", "itp_c06"] {
        assert!(!is_same(trace, Placement::Count, Strategy::Sjf, Reference::Fifo)?, "{trace}");
        assert!(!is_same(trace, Placement::Count, Strategy::Priority, Reference::PriorityEasy)?, "{trace}");
    }
    Ok(())
}
