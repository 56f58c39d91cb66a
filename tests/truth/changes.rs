//! Whether what is told to start a job does, each change alone, and whether less of it would.

use osprey_scheduler::change::{Change, DECISIONS_MAX, Question, Verified, least};
use osprey_sim::kernel::random::Random;

use crate::applied::applied;
use crate::case::Case;
use crate::smaller::smaller;

/// What came of the changes of a job.
#[derive(Clone, Debug, Default)]
pub struct Looked {
    /// The kind of each.
    pub kinds: Vec<&'static str>,
    /// What isn't as it was told.
    pub faults: Vec<String>,
    /// Changes of which less would have done, with the least that was found.
    pub smaller: Vec<String>,
}

/// Looks for the changes of a job, applies each, and less of each.
pub fn look(case: &Case, random: &mut Random) -> Looked {
    let question = Question {
        snapshot: &case.moment.snapshot,
        rules: &case.moment.rules,
        now_ms: case.moment.now_ms,
        job: case.job,
        reason: case.reason,
        gpus_per_node: case.moment.gpus_per_node,
        decisions_max: DECISIONS_MAX,
    };
    let mut looked = Looked::default();
    for verified in least(&question).changes {
        looked.kinds.push(verified.change.kind());
        looked.faults.extend(fault(&verified, case));
        let lesser = smaller(&verified.change, case, random).into_iter().find(|lesser| starts(lesser, case));
        looked.smaller.extend(lesser.map(|lesser| format!("{lesser:?} would do for {:?}", verified.change)));
    }
    looked
}

/// What is wrong about a change.
fn fault(Verified { change, victims }: &Verified, case: &Case) -> Option<String> {
    let (snapshot, rules) = applied(change, case);
    match case.next_cycle(&snapshot, &rules) {
        Ok(starts) if starts.victims == *victims => None,
        Ok(starts) => Some(format!("{change:?} is told to evict {victims}, and evicts {}", starts.victims)),
        Err(reason) => Some(format!("{change:?} doesn't start it: {reason:?}")),
    }
}

fn starts(change: &Change, case: &Case) -> bool {
    let (snapshot, rules) = applied(change, case);
    case.next_cycle(&snapshot, &rules).is_ok()
}
