//! What the simulator has no word for, put into a moment of it: arrays, jobs of several nodes and without GPUs, counted
//! vCPUs, nodes that start up, work of others, paused pools, back-offs, dispatches in flight, other limits. Nothing that is put
//! in contradicts what runs.

use std::collections::BTreeSet;

use osprey_policy::share::Budget;
use osprey_scheduler::rules::{Headroom, Reserve};
use osprey_scheduler::snapshot::{Array, Gate, Landing, Node, NodeState, Queued, UNCOUNTED};
use osprey_scheduler::{Rules, Snapshot, Strategy};
use osprey_sim::kernel::random::Random;

use crate::draw::{amount, between, one_of, place};
use crate::world::Moment;

/// One thing that is put in.
type Touch = fn(&mut Moment, &mut Random);

const TOUCHES: [Touch; 22] = [
    arrays,
    gangs,
    vcpus,
    vcpus,
    back_offs,
    nodes_that_come,
    no_capacity,
    foreign,
    foreign,
    foreign,
    closed,
    gate,
    in_flight,
    in_flight,
    unknown,
    too_large,
    headroom,
    limits,
    hours,
    reserves,
    strategy,
    no_nodes,
];

/// A moment with one to three things more.
pub fn richer(moment: &Moment, random: &mut Random) -> Moment {
    let mut moment = moment.clone();
    for _ in 0..between(random, 1, 3) {
        if let Some(touch) = one_of(random, &TOUCHES) {
            touch(&mut moment, random);
        }
    }
    users(&mut moment.snapshot, random);
    moment
}

fn each(snapshot: &mut Snapshot, random: &mut Random, chance: f64, mut change: impl FnMut(&mut Queued, &mut Random)) {
    for job in &mut snapshot.queued {
        if random.chance(chance) {
            change(job, random);
        }
    }
}

fn arrays(moment: &mut Moment, random: &mut Random) {
    each(&mut moment.snapshot, random, 0.4, |job, random| {
        if job.shape.nodes == 1 {
            job.array = Some(Array { waiting: between(random, 2, 9), singly: random.chance(0.5) });
            job.shape.gpus = job.shape.gpus.min(4);
        }
    });
}

fn gangs(moment: &mut Moment, random: &mut Random) {
    let widest = moment.snapshot.nodes.iter().map(|node| node.gpus).max().unwrap_or(1);
    each(&mut moment.snapshot, random, 0.3, |job, random| {
        job.array = None;
        job.shape.nodes = between(random, 2, 4);
        job.shape.gpus = if random.chance(0.7) { widest } else { between(random, 1, widest.max(1)) };
    });
}

/// Twelve vCPUs to a GPU, of which jobs take more or fewer, and jobs that need nothing else.
fn vcpus(moment: &mut Moment, random: &mut Random) {
    let snapshot = &mut moment.snapshot;
    if snapshot.nodes.iter().any(|node| node.vcpus != UNCOUNTED) {
        return;
    }
    for node in &mut snapshot.nodes {
        node.vcpus = node.gpus.saturating_mul(12);
    }
    let mut left: Vec<(u32, u32)> = snapshot.nodes.iter().map(|node| (node.gpus, node.vcpus)).collect();
    for running in &mut snapshot.running {
        for hold in &mut running.holds {
            let Some((gpus, vcpus)) = usize::try_from(hold.node).ok().and_then(|node| left.get_mut(node)) else {
                continue;
            };
            // What others on the node hold of its GPUs leaves them at least four vCPUs each.
            let most = vcpus.saturating_sub(4 * gpus.saturating_sub(hold.gpus));
            hold.vcpus = hold.gpus.saturating_mul(between(random, 4, 24)).min(most);
            (*gpus, *vcpus) = (gpus.saturating_sub(hold.gpus), vcpus.saturating_sub(hold.vcpus));
        }
        running.shape.vcpus = running.holds.iter().map(|hold| hold.vcpus).max().unwrap_or(0);
    }
    each(snapshot, random, 0.8, |job, random| {
        job.shape.vcpus = job.shape.gpus.max(1).saturating_mul(between(random, 4, 20));
        if job.shape.nodes == 1 && random.chance(0.15) {
            job.shape.gpus = 0;
        }
    });
}

fn back_offs(moment: &mut Moment, random: &mut Random) {
    let now_ms = moment.now_ms;
    each(&mut moment.snapshot, random, 0.2, |job, random| {
        job.not_before_ms = now_ms.saturating_add_unsigned(amount(random, 1, 900_000));
    });
}

/// Nodes on which nothing runs, by number.
fn idle(snapshot: &Snapshot) -> Vec<usize> {
    let holds = snapshot.running.iter().flat_map(|running| &running.holds);
    let used: BTreeSet<usize> = holds.filter_map(|hold| usize::try_from(hold.node).ok()).collect();
    (0..snapshot.nodes.len()).filter(|node| !used.contains(node)).collect()
}

fn nodes_that_come(moment: &mut Moment, random: &mut Random) {
    let now_ms = moment.now_ms;
    let come = |random: &mut Random| {
        if random.chance(0.5) {
            NodeState::Absent { start_up_ms: amount(random, 0, 600_000) }
        } else {
            NodeState::Starting { ready_ms: now_ms.saturating_add_unsigned(amount(random, 0, 600_000)) }
        }
    };
    for at in idle(&moment.snapshot) {
        if let Some(node) = moment.snapshot.nodes.get_mut(at).filter(|_| random.chance(0.6)) {
            node.state = come(random);
        }
    }
    let like = moment.snapshot.nodes.first().copied().unwrap_or(Node::new(8));
    let more = Node { foreign_gpus: 0, foreign_vcpus: 0, ..like };
    for _ in 0..between(random, 0, 2) {
        moment.snapshot.nodes.push(Node { state: come(random), ..more });
    }
}

fn no_capacity(moment: &mut Moment, random: &mut Random) {
    let like = moment.snapshot.nodes.first().copied().unwrap_or(Node::new(8));
    let absent = NodeState::Absent { start_up_ms: 300_000 };
    for _ in 0..between(random, 1, 3) {
        moment.snapshot.nodes.push(Node { state: absent, foreign_gpus: 0, foreign_vcpus: 0, ..like });
    }
    moment.snapshot.gate = Gate::NoCapacity { since_ms: moment.now_ms.saturating_sub(1_000_000) };
}

/// Others' work on what our own leaves free.
fn foreign(moment: &mut Moment, random: &mut Random) {
    let snapshot = &mut moment.snapshot;
    if snapshot.landing == Landing::Anywhere {
        return;
    }
    for (number, node) in (0_u32..).zip(&mut snapshot.nodes) {
        let holds = snapshot.running.iter().flat_map(|running| &running.holds).filter(|hold| hold.node == number);
        let (gpus, vcpus) = holds.fold((0, 0), |sum, hold| (sum.0 + hold.gpus, sum.1 + hold.vcpus));
        if random.chance(0.4) {
            node.foreign_gpus = between(random, 0, node.gpus.saturating_sub(gpus));
            if node.vcpus != UNCOUNTED {
                node.foreign_vcpus = between(random, 0, node.vcpus.saturating_sub(vcpus));
            }
        }
    }
}

fn closed(moment: &mut Moment, random: &mut Random) {
    for node in &mut moment.snapshot.nodes {
        if random.chance(0.15) {
            node.state = NodeState::Closed;
        }
    }
}

fn gate(moment: &mut Moment, random: &mut Random) {
    if random.chance(0.3) {
        moment.snapshot.gate = Gate::Paused;
        return;
    }
    if let Some(job) = one_of(random, &moment.snapshot.queued) {
        moment.snapshot.drained = vec![job.tier];
    }
}

/// Batch chooses the nodes, and of what runs some may yet land elsewhere.
fn in_flight(moment: &mut Moment, random: &mut Random) {
    let snapshot = &mut moment.snapshot;
    if snapshot.nodes.iter().any(|node| node.foreign_gpus > 0 || node.foreign_vcpus > 0) {
        return;
    }
    snapshot.landing = Landing::Anywhere;
    for running in &mut snapshot.running {
        running.has_landed = random.chance(0.7);
    }
}

fn unknown(moment: &mut Moment, random: &mut Random) {
    let now_ms = moment.now_ms;
    each(&mut moment.snapshot, random, 0.4, |job, _| job.expected_ms = None);
    for running in &mut moment.snapshot.running {
        if random.chance(0.2) {
            running.expected_end_ms = None;
        } else if random.chance(0.2) {
            running.expected_end_ms = Some(now_ms.saturating_sub_unsigned(amount(random, 0, 1_000_000)));
        }
    }
}

fn too_large(moment: &mut Moment, random: &mut Random) {
    let gpus = moment.snapshot.gpus();
    let nodes = u32::try_from(moment.snapshot.nodes.len()).unwrap_or(1);
    each(&mut moment.snapshot, random, 0.2, |job, random| match random.below(4) {
        0 => job.shape.gpus = gpus.saturating_add(between(random, 1, 9)),
        1 => job.shape.vcpus = 100_000,
        2 => (job.array, job.shape.nodes) = (None, nodes.saturating_add(between(random, 1, 2)).max(2)),
        _ => (job.array, job.shape.nodes, job.shape.gpus) = (None, 2, between(random, 9, 12)),
    });
}

fn headroom(moment: &mut Moment, random: &mut Random) {
    let gpus = moment.snapshot.gpus();
    moment.rules.headroom = if random.chance(0.5) {
        Headroom::Percent(between(random, 5, 60))
    } else {
        Headroom::Gpus(between(random, 1, gpus.clamp(1, 24)))
    };
}

/// GPUs of teams near to what they hold.
fn limits(moment: &mut Moment, random: &mut Random) {
    let tiers: Vec<_> = moment.rules.tiers.iter().map(|tier| tier.name.clone()).collect();
    give_teams(&mut moment.snapshot);
    for team in &mut moment.snapshot.teams {
        for tier in &tiers {
            let held = team.gpus.get(tier).copied().unwrap_or(0);
            if random.chance(0.6) {
                team.gpus_max.insert(tier.clone(), held.saturating_add(between(random, 0, 8)));
            }
        }
    }
}

/// GPU-hours of teams near to what they have used.
fn hours(moment: &mut Moment, random: &mut Random) {
    give_teams(&mut moment.snapshot);
    for team in &mut moment.snapshot.teams {
        let near = |budget: &Budget, random: &mut Random| {
            let most = budget.used_gpu_ms.saturating_add(budget.promised_gpu_ms).saturating_mul(2);
            Some(amount(random, 0, most.saturating_add(36_000_000)))
        };
        if random.chance(0.7) {
            team.day.limit_gpu_ms = near(&team.day, random);
        }
        if random.chance(0.4) {
            team.week.limit_gpu_ms = near(&team.week, random);
        }
    }
    moment.rules.quota.borrowing = random.chance(0.3);
}

/// Teams that have used nothing but what runs, where the policy asks for none.
fn give_teams(snapshot: &mut Snapshot) {
    if !snapshot.teams.is_empty() {
        return;
    }
    snapshot.teams = vec![Default::default(); 3];
    for (number, job) in (0_u16..).zip(&mut snapshot.queued) {
        job.charge.team = Some(number % 3);
    }
}

/// Reserves of tiers, with whoever is of them.
fn reserves(moment: &mut Moment, random: &mut Random) {
    let now_ms = moment.now_ms;
    let rules = &mut moment.rules;
    let tiers = rules.tiers.iter().take(2);
    rules.quota.reserves = tiers
        .map(|tier| {
            let share_percent = between(random, 5, 45);
            let gpus = random.chance(0.2).then(|| between(random, 1, 8));
            Reserve {
                name: tier.name.to_string(),
                workloads: Vec::new(),
                tiers: vec![tier.name.clone()],
                share_percent,
                gpus,
                // What is a number of GPUs is kept by a person, for a time.
                until_ms: gpus.map(|_| now_ms.saturating_add(3_600_000)),
                user_percent: random.chance(0.5).then(|| between(random, 10, 60)),
            }
        })
        .collect();
    for job in &mut moment.snapshot.queued {
        job.charge.reserve = reserve_of(job.tier, rules);
    }
    for running in &mut moment.snapshot.running {
        running.charge.reserve = reserve_of(running.tier, rules);
    }
}

/// The reserve that jobs of a tier may take from, where reserves ask for nothing else.
pub fn reserve_of(tier: u16, rules: &Rules) -> Option<u16> {
    let name = &rules.tiers.get(usize::from(tier))?.name;
    let is_for =
        |reserve: &Reserve| reserve.workloads.is_empty() && (reserve.tiers.is_empty() || reserve.tiers.contains(name));
    u16::try_from(rules.quota.reserves.iter().position(is_for)?).ok()
}

fn users(snapshot: &mut Snapshot, random: &mut Random) {
    let user = |random: &mut Random| Some(between(random, 0, 2));
    snapshot.queued.iter_mut().for_each(|job| job.charge.user = user(random));
    snapshot.running.iter_mut().for_each(|running| running.charge.user = user(random));
}

fn strategy(moment: &mut Moment, random: &mut Random) {
    moment.rules.strategy = Strategy::ALL.get(place(random, Strategy::ALL.len())).copied().unwrap_or_default();
}

fn no_nodes(moment: &mut Moment, random: &mut Random) {
    if random.chance(0.2) {
        moment.snapshot.nodes.clear();
        moment.snapshot.running.clear();
    }
}
