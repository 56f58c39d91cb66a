//! What is lent is taken back: who may, from whom, and under which of the rules that hold for every eviction.

use osprey_model::id::JobId;
use osprey_policy::share::{Budget, TeamUse};
use proptest::collection::vec;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::Opened;
use super::candidate::spared;
use crate::quota::may_take_back;
use crate::rules::{Headroom, QuotaRules, Reserve, Rules, Strategy, TierRules};
use crate::snapshot::{Charge, Evicted, Hold, Node, Queued, Running, Shape, Snapshot};
use crate::{Plan, WaitReason, decide};

const MINUTE: i64 = 60_000;
const NOW: i64 = 20_000 * 86_400_000 + 600 * MINUTE;
const HOUR: u64 = 3_600_000;

const HIGH: u16 = 0;
const LOW: u16 = 1;
const SPARE: u16 = 2;

/// Teams of a snapshot: one within its quota, and two over theirs, the last of which has used most of late.
const WITHIN: u16 = 0;
const OVER: u16 = 1;
const FURTHER: u16 = 2;

fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

/// No tier may evict another: what goes is what is lent.
fn rules() -> Rules {
    let tier = |name: &str, at_least| TierRules {
        name: name.into(),
        at_least,
        minimum_run_ms: 300_000,
        evictions_per_job: Some(2),
        ..TierRules::default()
    };
    Rules {
        strategy: Strategy::Osprey,
        dive_above: 800,
        tiers: vec![tier("high", Some(800)), tier("low", Some(0)), tier("spare", None)],
        quota: QuotaRules { borrowing: true, ..QuotaRules::default() },
        ..Rules::default()
    }
}

fn team(used: u64, share: u64) -> TeamUse {
    let day = Budget { used_gpu_ms: used * HOUR, limit_gpu_ms: Some(50 * HOUR), ..Budget::default() };
    TeamUse { day, share_gpu_ms: share * HOUR, weight: 1, ..TeamUse::default() }
}

fn of(team: u16) -> Charge {
    Charge { team: Some(team), ..Charge::default() }
}

/// A borrowed job of a team on a node, for an hour by now and two hours more.
fn lent(job: u128, team: u16, node: u32, gpus: u32) -> Running {
    Running {
        holds: vec![Hold::gpus(node, gpus)],
        has_landed: true,
        started_ms: NOW - 60 * MINUTE,
        expected_end_ms: Some(NOW + 120 * MINUTE),
        tier: LOW,
        saves_every_ms: Some(600_000),
        charge: of(team),
        is_borrowed: true,
        ..Running::new(id(job), Shape::gpus(gpus))
    }
}

fn own(job: u128, team: u16, node: u32, gpus: u32) -> Running {
    Running { is_borrowed: false, ..lent(job, team, node, gpus) }
}

/// A job of a team that came now and runs for ten minutes.
fn queued(job: u128, team: u16, gpus: u32) -> Queued {
    Queued {
        priority: 500,
        tier: LOW,
        enqueued_ms: NOW,
        expected_ms: Some(600_000),
        charge: of(team),
        ..Queued::new(id(job), Shape::gpus(gpus))
    }
}

fn snapshot(nodes: usize, running: &[Running], queued: &[Queued]) -> Snapshot {
    Snapshot {
        nodes: vec![Node::new(8); nodes],
        running: running.to_vec(),
        queued: queued.to_vec(),
        teams: vec![team(0, 1), team(60, 60), team(90, 90)],
        ..Snapshot::default()
    }
}

fn victims(plan: &Plan) -> Vec<(JobId, Opened)> {
    plan.evictions.iter().flat_map(|eviction| &eviction.victims).map(|victim| (victim.job, victim.opened)).collect()
}

fn evicted(snapshot: &Snapshot, rules: &Rules) -> Vec<(JobId, Opened)> {
    victims(&decide(snapshot, rules, NOW))
}

/// C27: no tier allows it, and the job that takes back is no more urgent than the one that goes.
#[test]
fn a_job_within_its_quota_takes_back_what_another_team_has_borrowed() {
    let pool = snapshot(1, &[lent(1, OVER, 0, 8)], &[queued(9, WITHIN, 4)]);
    let plan = decide(&pool, &rules(), NOW);
    assert_eq!(victims(&plan), [(id(1), Opened::Borrowed)]);
    let [eviction] = plan.evictions.as_slice() else { panic!("{plan:?}") };
    assert_eq!((eviction.start.job, eviction.start.is_borrowed), (id(9), false));
    assert_eq!((eviction.predicted_wait_ms, eviction.threshold_ms), (7_200_000, 400_000));
    let urgent = Running { tier: HIGH, priority: 1_200, ..lent(1, OVER, 0, 8) };
    assert_eq!(evicted(&snapshot(1, &[urgent], &[queued(9, WITHIN, 4)]), &rules()), [(id(1), Opened::Borrowed)]);
    let backfill = Rules { strategy: Strategy::Backfill, ..rules() };
    assert_eq!(evicted(&pool, &backfill), [], "only `osprey` evicts");
}

#[test]
fn nothing_is_taken_back_but_loans_of_others_by_those_within_their_own() {
    let pool = |running: Running, waiting: Queued| evicted(&snapshot(1, &[running], &[waiting]), &rules());
    assert_eq!(pool(own(1, OVER, 0, 8), queued(9, WITHIN, 4)), [], "it is no loan");
    assert_eq!(pool(lent(1, OVER, 0, 8), queued(9, FURTHER, 4)), [], "who is over borrows himself");
    assert_eq!(pool(lent(1, WITHIN, 0, 8), queued(9, WITHIN, 4)), [], "nobody from himself");
    let spare = Queued { tier: SPARE, priority: 0, ..queued(9, WITHIN, 4) };
    assert_eq!(pool(lent(1, OVER, 0, 8), spare), [], "what is preemptible yields to everybody");
    let nobody = Queued { charge: Charge::default(), ..queued(9, WITHIN, 4) };
    assert_eq!(pool(lent(1, OVER, 0, 8), nobody), [(id(1), Opened::Borrowed)], "a job without a team has no quota");
    let again = Running { charge: of(WITHIN), ..lent(1, OVER, 0, 8) };
    let other = Queued { charge: Charge::default(), ..queued(9, WITHIN, 4) };
    assert_eq!(pool(again, other), [], "a team that is within its quota again has what it has");
}

#[test]
fn what_holds_for_every_eviction_holds_for_loans() {
    let pool = |running: Running| evicted(&snapshot(1, &[running], &[queued(9, WITHIN, 4)]), &rules());
    let lent = || lent(1, OVER, 0, 8);
    assert_eq!(pool(Running { started_ms: NOW - 4 * MINUTE, ..lent() }), [], "minimum run");
    assert_eq!(pool(Running { percent: Some(90), ..lent() }), [], "nearly done");
    assert_eq!(pool(Running { evictions: 2, ..lent() }), [], "evicted as often as it may be");
    assert_eq!(pool(Running { has_landed: false, ..lent() }), [], "nobody knows where it is");
    assert_eq!(pool(Running { expected_end_ms: Some(NOW + 6 * MINUTE), ..lent() }), [], "the wait isn't worth it");
    let mut budgeted = rules();
    (budgeted.tiers[1].evictions_per_window, budgeted.tiers[1].eviction_window_ms) = (Some(1), 3_600_000);
    let mut pool = snapshot(1, &[lent()], &[queued(9, WITHIN, 4)]);
    assert_eq!(evicted(&pool, &budgeted).len(), 1);
    pool.evicted.push(Evicted { tier: LOW, at_ms: NOW - 10 * MINUTE });
    assert_eq!(evicted(&pool, &budgeted), [], "the budget of its tier is used up");
}

/// C28: team first, job second.
#[test]
fn the_team_that_has_used_most_of_late_gives_back_first_whatever_it_costs() {
    let cheap = Running { saves_every_ms: Some(0), ..lent(1, OVER, 0, 4) };
    let dear = Running { saves_every_ms: None, ..lent(2, FURTHER, 0, 4) };
    let pool = snapshot(1, &[cheap.clone(), dear.clone()], &[queued(9, WITHIN, 4)]);
    assert_eq!(evicted(&pool, &rules()), [(id(2), Opened::Borrowed)]);
    // Both, where one isn't enough.
    let mut both = evicted(&snapshot(1, &[cheap, dear], &[queued(9, WITHIN, 8)]), &rules());
    both.sort();
    assert_eq!(both, [(id(1), Opened::Borrowed), (id(2), Opened::Borrowed)]);
}

#[test]
fn loans_go_before_anybodys_own_and_each_victim_is_told_its_rule() {
    let mut rules = rules();
    rules.tiers[0].may_preempt = vec![LOW];
    let urgent = |gpus| Queued { priority: 1_000, tier: HIGH, ..queued(9, WITHIN, gpus) };
    let cheap = Running { saves_every_ms: Some(0), ..own(1, OVER, 0, 4) };
    let dear = Running { saves_every_ms: None, ..lent(2, OVER, 0, 4) };
    let pool = |gpus| evicted(&snapshot(1, &[cheap.clone(), dear.clone()], &[urgent(gpus)]), &rules);
    assert_eq!(pool(4), [(id(2), Opened::Borrowed)]);
    let mut both = pool(8);
    both.sort();
    assert_eq!(both, [(id(1), Opened::Always), (id(2), Opened::Borrowed)]);
}

#[test]
fn who_takes_back_leaves_the_headroom_that_was_free() {
    // 4 of 16 GPUs are kept free, and are free.
    let rules = Rules { headroom: Headroom::Gpus(4), ..rules() };
    let waiting = Queued { enqueued_ms: NOW - 30 * MINUTE, ..queued(9, WITHIN, 4) };
    let pool = |running: &[Running]| decide(&snapshot(2, running, &[waiting]), &rules, NOW);
    let busy = [own(5, WITHIN, 1, 8), lent(1, OVER, 0, 4)];
    let plan = pool(&busy);
    assert_eq!(victims(&plan), [(id(1), Opened::Borrowed)]);
    // A loan of half as many GPUs would take the rest from the headroom.
    let plan = pool(&[own(5, WITHIN, 1, 8), lent(1, OVER, 0, 2), own(6, WITHIN, 0, 2)]);
    assert_eq!((victims(&plan), plan.starts.len()), (vec![], 0));
    assert!(matches!(plan.waiting[0].reason, WaitReason::Headroom { .. }), "{plan:?}");
}

#[test]
fn who_takes_back_leaves_what_is_reserved_for_others() {
    let reserve =
        Reserve { name: "urgent".to_owned(), tiers: vec!["high".into()], share_percent: 50, ..Reserve::default() };
    let mut rules = rules();
    rules.quota.reserves = vec![reserve];
    let waiting = Queued { enqueued_ms: NOW - 30 * MINUTE, ..queued(9, WITHIN, 4) };
    let pool = |running: &[Running]| evicted(&snapshot(1, running, &[waiting]), &rules);
    // Four of eight are kept; four are lent.
    assert_eq!(pool(&[lent(1, OVER, 0, 4)]), [(id(1), Opened::Borrowed)]);
    assert_eq!(pool(&[lent(1, OVER, 0, 2), own(5, WITHIN, 0, 2)]), []);
    // What the jobs of the reserve hold of it needn't be kept, until they are what goes.
    let mut urgent = lent(1, OVER, 0, 8);
    urgent.charge.reserve = Some(0);
    assert_eq!(pool(&[urgent]), [(id(1), Opened::Borrowed)]);
    let mut urgent = lent(1, OVER, 0, 4);
    urgent.charge.reserve = Some(0);
    assert_eq!(pool(&[urgent, own(5, WITHIN, 0, 4)]), []);
}

#[test]
fn a_team_takes_back_no_more_than_its_quota_leaves_it() {
    let jobs = [queued(8, WITHIN, 8), queued(9, WITHIN, 8)];
    let jobs = jobs.map(|job| Queued { expected_ms: Some(7 * HOUR), ..job });
    let running = [lent(1, OVER, 0, 8), lent(2, OVER, 1, 8)];
    let mut pool = snapshot(2, &running, &jobs);
    // 56 GPU-hours each: the first uses up all that is left.
    assert_eq!(evicted(&pool, &rules()).len(), 1);
    pool.teams[0] = team(51, 1);
    assert_eq!(evicted(&pool, &rules()), []);
}

proptest! {
    /// Whatever runs and waits: what goes by the rule of loans is a loan of another team, for a job within its own quota;
    /// nothing that is spared goes, caps and budgets hold, and no node is given out twice.
    #[test]
    fn only_loans_are_taken_back_and_no_cap_is_broken(
        running in vec((1_u32..9, 0_u16..3, proptest::bool::ANY, (0_i64..180, 0_i64..300), (0_u16..3, 0_u32..4)), 1..16),
        waiting in vec((1_u32..9, 0_u16..4, 0_u32..1_300, 0_i64..120, 1_u64..600), 1..8),
        teams in vec(0_u64..70, 3), budget in 0_u32..4, may_preempt in proptest::bool::ANY, headroom in 0_u32..9,
    ) {
        let mut rules = Rules { headroom: Headroom::Gpus(headroom), ..rules() };
        for tier in &mut rules.tiers {
            (tier.evictions_per_window, tier.eviction_window_ms) = (Some(budget), 3_600_000);
        }
        if may_preempt {
            rules.tiers[0].may_preempt = vec![SPARE, LOW];
        }
        let mut free = [8_u32; 3];
        let mut runs = Vec::new();
        for ((gpus, team, is_borrowed, (ran, left), (tier, evictions)), number) in running.into_iter().zip(100..) {
            let Some(node) = (0..3).find(|node| free[*node] >= gpus) else { continue };
            free[node] -= gpus;
            runs.push(Running {
                started_ms: NOW - ran * MINUTE,
                expected_end_ms: Some(NOW + left * MINUTE),
                is_borrowed,
                tier,
                evictions,
                ..lent(number, team, u32::try_from(node).unwrap(), gpus)
            });
        }
        let jobs: Vec<Queued> = waiting
            .into_iter()
            .zip(1..)
            .map(|((gpus, team, priority, waited, minutes), number)| Queued {
                priority,
                tier: if priority >= 800 { HIGH } else if priority % 5 == 0 { SPARE } else { LOW },
                enqueued_ms: NOW - waited * MINUTE,
                expected_ms: Some(minutes * 60_000),
                charge: Charge { team: (team < 3).then_some(team), ..Charge::default() },
                ..Queued::new(id(number), Shape::gpus(gpus))
            })
            .collect();
        let pool = Snapshot { teams: teams.iter().map(|used| team(*used, *used)).collect(), ..snapshot(3, &runs, &jobs) };
        let plan = decide(&pool, &rules, NOW);
        let mut counts = [0_u32; 3];
        let mut gone = Vec::new();
        for eviction in &plan.evictions {
            let job = jobs.iter().find(|job| job.job == eviction.start.job).unwrap();
            prop_assert!(eviction.predicted_wait_ms > eviction.threshold_ms && !eviction.start.is_borrowed);
            for victim in &eviction.victims {
                let run = runs.iter().find(|run| run.job == victim.job).unwrap();
                prop_assert_eq!(spared(run, &rules, NOW), None);
                match victim.opened {
                    Opened::Borrowed => prop_assert!(run.is_borrowed && may_take_back(job, run, &pool, &rules)),
                    _ => prop_assert!(may_preempt && job.tier == HIGH && run.tier != HIGH),
                }
                counts[usize::from(run.tier)] += 1;
                gone.push(run.job);
            }
        }
        prop_assert!(counts.iter().all(|count| *count <= budget));
        let all = gone.len();
        gone.sort();
        gone.dedup();
        prop_assert_eq!(gone.len(), all);
        let mut left = [8_i64; 3];
        let stays = runs.iter().filter(|run| !gone.contains(&run.job)).flat_map(|run| &run.holds);
        let starts = plan.starts.iter().chain(plan.evictions.iter().map(|eviction| &eviction.start));
        stays.chain(starts.flat_map(|start| &start.holds)).for_each(|hold| left[hold.node as usize] -= i64::from(hold.gpus));
        prop_assert!(left.iter().all(|left| *left >= 0), "{:?}", &plan);
    }
}
