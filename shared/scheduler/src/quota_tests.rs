use osprey_model::id::JobId;
use osprey_policy::rules::Reserve;
use proptest::collection::vec;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::plan::Plan;
use crate::rules::{QuotaRules, TierRules};
use crate::snapshot::{Array, Budget, Hold, Node, Shape};
use crate::{decide, order};

const HOUR: u64 = 3_600_000;
const HIGH: u16 = 0;
const LOW: u16 = 1;
const SPARE: u16 = 2;
/// Ten o'clock.
const NOW: i64 = 20_000 * DAY_MS + 36_000_000;

fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

fn rules(quota: QuotaRules) -> Rules {
    let tier = |name: &str, at_least| TierRules { name: name.into(), at_least, ..TierRules::default() };
    let tiers = vec![tier("high", Some(800)), tier("low", Some(0)), tier("spare", None)];
    Rules { tiers, dive_above: 900, quota, ..Rules::default() }
}

/// A job of team (or of none) with a number, GPUs and hours.
fn job(number: u128, team: Option<u16>, priority: u32, gpus: u32, hours: u64) -> Queued {
    Queued {
        priority,
        tier: if priority >= 800 { HIGH } else { LOW },
        expected_ms: Some(hours * HOUR),
        enqueued_ms: NOW - 1_000 + i64::try_from(number).unwrap(),
        charge: Charge { team, ..Charge::default() },
        ..Queued::new(id(number), Shape::gpus(gpus))
    }
}

/// A team with so many GPU-hours of a day left of 50, and so many GPUs of 16 held in the tier `high`.
fn team(left: u64, held: u32) -> TeamUse {
    let day = Budget {
        used_gpu_ms: (50 - left) * HOUR,
        limit_gpu_ms: Some(50 * HOUR),
        passes_ms: Some(NOW + 5),
        ..Budget::default()
    };
    TeamUse {
        day,
        gpus: BTreeMap::from([("high".into(), held)]),
        gpus_max: BTreeMap::from([("high".into(), 16)]),
        weight: 1,
        ..TeamUse::default()
    }
}

/// Nodes of 8.
fn snapshot(nodes: usize, teams: &[TeamUse], queued: &[Queued]) -> Snapshot {
    let (teams, queued) = (teams.to_vec(), queued.to_vec());
    Snapshot { nodes: vec![Node::new(8); nodes], teams, queued, ..Snapshot::default() }
}

fn numbers(jobs: impl Iterator<Item = JobId>) -> Vec<u128> {
    jobs.map(|job| (0..99).find(|number| id(*number) == job).unwrap()).collect()
}

fn started(plan: &Plan) -> Vec<u128> {
    numbers(plan.starts.iter().map(|start| start.job))
}

fn reason(plan: &Plan, job: u128) -> WaitReason {
    plan.waiting.iter().find(|waiting| waiting.job == id(job)).unwrap().reason
}

fn limit(plan: &Plan, job: u128) -> Option<(Limit, u64, u64, u64)> {
    match reason(plan, job) {
        WaitReason::OverQuota { limit, used, asked, most, .. } => Some((limit, used, asked, most)),
        _ => None,
    }
}

/// C25: 50 GPU-hours spent are held, however much room there is, and hold up nobody.
#[test]
fn a_team_that_has_used_its_gpu_hours_waits_and_others_start() {
    let queued = [job(1, Some(0), 700, 8, 1), job(2, Some(1), 500, 8, 1), job(3, None, 400, 8, 1)];
    let plan = decide(&snapshot(3, &[team(0, 0), team(1, 0)], &queued), &rules(QuotaRules::default()), NOW);
    assert_eq!(started(&plan), [2, 3]);
    assert!(plan.reservations.is_empty());
    let WaitReason::OverQuota { limit, used, asked, most, passes_ms } = reason(&plan, 1) else { panic!() };
    assert_eq!((limit, used, asked, most), (Limit::GpuHoursDay, 50 * HOUR, 8 * HOUR, 50 * HOUR));
    assert_eq!(passes_ms, Some(NOW + 5));
}

#[test]
fn the_starts_of_one_plan_count_against_the_quota_of_their_team() {
    // Each takes 4 of the 6 GPU-hours that are left: the second starts on the rest, the third has none.
    let queued = [job(1, Some(0), 500, 4, 1), job(2, Some(0), 500, 4, 1), job(3, Some(0), 500, 4, 1)];
    let plan = decide(&snapshot(3, &[team(6, 0)], &queued), &rules(QuotaRules::default()), NOW);
    assert_eq!(started(&plan), [1, 2]);
    assert_eq!(limit(&plan, 3), Some((Limit::GpuHoursDay, 52 * HOUR, 4 * HOUR, 50 * HOUR)));
}

#[test]
fn what_is_promised_to_running_jobs_is_as_good_as_used() {
    let mut promised = team(6, 0);
    promised.day.promised_gpu_ms = 6 * HOUR;
    let plan = decide(&snapshot(1, &[promised], &[job(1, Some(0), 500, 1, 1)]), &rules(QuotaRules::default()), NOW);
    assert_eq!(limit(&plan, 1).map(|(.., used, _, _)| used), Some(50 * HOUR));
}

#[test]
fn a_day_is_charged_until_midnight_and_a_week_in_whole() {
    let week = Budget { limit_gpu_ms: Some(20 * HOUR), ..Budget::default() };
    // Fourteen hours are left of the day, and the job runs for twenty.
    let teams = [TeamUse { week, ..team(15, 0) }];
    let queued = [job(1, Some(0), 500, 1, 20), job(2, Some(0), 500, 1, 1)];
    let plan = decide(&snapshot(1, &teams, &queued), &rules(QuotaRules::default()), NOW);
    assert_eq!((started(&plan), limit(&plan, 2)), (vec![1], Some((Limit::GpuHoursWeek, 20 * HOUR, HOUR, 20 * HOUR))));
}

#[test]
fn no_job_is_too_long_for_a_quota_that_isnt_used_up() {
    let queued = [job(1, Some(0), 500, 8, 900)];
    let plan = decide(&snapshot(1, &[team(1, 0)], &queued), &rules(QuotaRules::default()), NOW);
    assert_eq!(started(&plan), [1]);
}

/// D3
#[test]
fn a_team_never_holds_more_gpus_at_once_in_a_tier_than_it_may() {
    let queued = [
        job(1, Some(0), 850, 4, 1), // 8 + 4 of 16
        job(2, Some(0), 850, 8, 1), // 20 would be too many
        job(3, Some(0), 850, 4, 1), // and these are the last
        job(4, Some(0), 850, 1, 1),
        job(5, Some(0), 500, 4, 1), // another tier has none
        job(6, Some(1), 850, 8, 1), // and so has another team
    ];
    let plan = decide(&snapshot(4, &[team(50, 8), team(50, 0)], &queued), &rules(QuotaRules::default()), NOW);
    assert_eq!(started(&plan), [1, 3, 6, 5]);
    assert_eq!(limit(&plan, 2), Some((Limit::TeamGpus, 12, 8, 16)));
    assert_eq!(limit(&plan, 4), Some((Limit::TeamGpus, 16, 1, 16)));
}

#[test]
fn the_children_of_an_array_count_as_they_start() {
    let array = Some(Array { waiting: 4, singly: true });
    let queued = [Queued { array, ..job(1, Some(0), 850, 2, 1) }];
    let plan = decide(&snapshot(2, &[team(50, 11)], &queued), &rules(QuotaRules::default()), NOW);
    assert_eq!(plan.starts.len(), 2);
    assert_eq!(limit(&plan, 1), Some((Limit::TeamGpus, 15, 2, 16)));
    // One that Batch unfolds itself counts with all that it may hold.
    let queued = [Queued { array: Some(Array { waiting: 4, singly: false }), ..job(1, Some(0), 850, 2, 1) }];
    let plan = decide(&snapshot(2, &[team(50, 11)], &queued), &rules(QuotaRules::default()), NOW);
    assert_eq!(limit(&plan, 1), Some((Limit::TeamGpus, 11, 8, 16)));
}

#[test]
fn preemptible_work_and_work_without_gpus_is_held_by_no_quota_of_hours() {
    let queued = [Queued { tier: SPARE, ..job(1, Some(0), 0, 8, 1) }, job(2, Some(0), 500, 0, 1)];
    let plan = decide(&snapshot(1, &[team(0, 16)], &queued), &rules(QuotaRules::default()), NOW);
    assert_eq!(started(&plan), [2, 1]);
}

#[test]
fn a_job_over_its_quota_is_demoted_where_the_policy_says_so_and_by_hours_alone() {
    let quota = QuotaRules { over: Over::Demote, ..QuotaRules::default() };
    let queued = [job(1, Some(0), 500, 8, 1), job(2, Some(1), 850, 8, 1)];
    let plan = decide(&snapshot(2, &[team(0, 0), team(50, 16)], &queued), &rules(quota), NOW);
    assert_eq!((started(&plan), numbers(plan.demotions.iter().copied())), (vec![], vec![1]));
}

/// C27: a team goes on over its quota with what nobody within his own wants, after all of these, and is marked.
#[test]
fn idle_quota_is_borrowed_after_everybody_who_is_within_his_own() {
    let quota = QuotaRules { borrowing: true, ..QuotaRules::default() };
    let queued = [job(1, Some(0), 700, 8, 1), job(2, Some(0), 650, 8, 1), job(3, Some(1), 100, 8, 1)];
    let plan = decide(&snapshot(2, &[team(0, 0), team(50, 0)], &queued), &rules(quota.clone()), NOW);
    let starts: Vec<(u128, bool)> =
        started(&plan).into_iter().zip(plan.starts.iter().map(|start| start.is_borrowed)).collect();
    assert_eq!(starts, [(3, false), (1, true)]);
    assert_eq!(reason(&plan, 2), WaitReason::NoRoom { gpus: 8, free: 0 });
    // Nothing is kept for a borrower, and he takes nothing that is kept for another.
    let large = [job(1, Some(0), 700, 1, 9), job(3, Some(1), 100, 16, 1)];
    let mut busy = snapshot(2, &[team(0, 0), team(50, 0)], &large);
    busy.running.push(Running {
        holds: vec![Hold::gpus(0, 7)],
        has_landed: true,
        expected_end_ms: Some(NOW + 3_600_000),
        ..Running::new(id(90), Shape::gpus(7))
    });
    let plan = decide(&busy, &rules(quota), NOW);
    assert_eq!((started(&plan), plan.reservations.len()), (vec![], 1));
    assert!(matches!(reason(&plan, 1), WaitReason::WouldDelay { head, .. } if head == id(3)));
}

/// The first child is within the quota, and the others came with it before a job that is.
#[test]
fn of_an_array_the_children_that_borrow_come_after_everybody_who_is_within_his_own() {
    let quota = QuotaRules { borrowing: true, ..QuotaRules::default() };
    let array = Queued { array: Some(Array { waiting: 3, singly: true }), ..job(1, Some(0), 850, 2, 1) };
    let queued = [array, job(2, Some(1), 500, 4, 1)];
    let plan = decide(&snapshot(1, &[team(1, 0), team(50, 0)], &queued), &rules(quota), NOW);
    let starts: Vec<(u128, Option<u32>, bool)> = started(&plan)
        .into_iter()
        .zip(&plan.starts)
        .map(|(job, start)| (job, start.child, start.is_borrowed))
        .collect();
    assert_eq!(starts, [(1, Some(0), false), (2, None, false), (1, Some(1), true)]);
    assert_eq!(reason(&plan, 1), WaitReason::NoRoom { gpus: 2, free: 0 });
}

/// C27, C28: team first: what is borrowed is open to whoever is within his own quota, whatever the tiers say.
#[test]
fn borrowed_work_may_be_taken_back_by_those_within_their_quota_alone() {
    let rules = rules(QuotaRules { borrowing: true, ..QuotaRules::default() });
    let snapshot = snapshot(1, &[team(0, 0), team(50, 0)], &[]);
    let charge = |team| Charge { team, ..Charge::default() };
    let running = |team, is_borrowed| Running {
        charge: charge(team),
        is_borrowed,
        tier: HIGH,
        ..Running::new(id(1), Shape::gpus(1))
    };
    let may =
        |waiting: Option<u16>, running: &Running| may_take_back(&job(2, waiting, 0, 1, 1), running, &snapshot, &rules);
    assert!(may(Some(1), &running(Some(0), true)) && may(None, &running(Some(0), true)));
    assert!(!may(Some(1), &running(Some(0), false)), "what is no loan can't be taken back");
    assert!(!may(Some(0), &running(Some(1), true)), "whoever is over takes nothing back");
    assert!(!may(Some(1), &running(Some(1), true)), "and nobody from himself");
}

fn interactive() -> QuotaRules {
    let reserve = Reserve {
        name: "interactive".to_owned(),
        workloads: vec!["interactive".to_owned()],
        share_percent: 20,
        user_percent: Some(50),
        ..Reserve::default()
    };
    QuotaRules { reserves: vec![reserve], ..QuotaRules::default() }
}

fn of_user(number: u128, user: u32, gpus: u32) -> Queued {
    Queued { charge: Charge { reserve: Some(0), user: Some(user), team: None }, ..job(number, None, 850, gpus, 1) }
}

/// C6: of 40 GPUs 8 stay free for interactive work, urgent or not, and interactive work may have all.
#[test]
fn what_is_reserved_is_left_to_those_that_it_is_reserved_for() {
    let others = [job(1, None, 950, 8, 1), job(2, None, 500, 8, 1), job(3, None, 500, 8, 1), job(4, None, 500, 8, 1)];
    let queued: Vec<Queued> = others.iter().copied().chain([job(5, None, 500, 1, 1), of_user(6, 1, 4)]).collect();
    let plan = decide(&snapshot(5, &[], &queued), &rules(interactive()), NOW);
    assert_eq!(started(&plan), [1, 6, 2, 3, 4]);
    // Half of the reserve is used by then, so half of it is kept.
    assert_eq!(reason(&plan, 5), WaitReason::Reserved { gpus: 1, free: 4, kept: 4, open: 32 });
}

#[test]
fn a_job_that_the_reserve_leaves_no_room_for_ever_holds_up_nobody() {
    let plan =
        decide(&snapshot(5, &[], &[job(1, None, 950, 40, 1), job(2, None, 500, 8, 1)]), &rules(interactive()), NOW);
    assert_eq!((started(&plan), plan.reservations.len()), (vec![2], 0));
    assert!(reason(&plan, 1).holds_up_nobody());
}

/// C7: of the 8 GPUs a user holds 4 at most, running ones included.
#[test]
fn a_user_never_holds_more_than_his_share_of_a_reserve() {
    let mut now = snapshot(5, &[], &[of_user(1, 1, 2), of_user(2, 1, 2), of_user(3, 2, 4), of_user(4, 2, 1)]);
    now.running.push(Running {
        charge: of_user(9, 1, 2).charge,
        holds: vec![Hold::gpus(0, 2)],
        has_landed: true,
        ..Running::new(id(9), Shape::gpus(2))
    });
    let plan = decide(&now, &rules(interactive()), NOW);
    assert_eq!(started(&plan), [1, 3]);
    assert_eq!(
        [limit(&plan, 2), limit(&plan, 4)],
        [Some((Limit::UserGpus, 4, 2, 4)), Some((Limit::UserGpus, 4, 1, 4))]
    );
}

fn ordered(teams: &[TeamUse], queued: &[Queued], quota: QuotaRules) -> Vec<u128> {
    let snapshot = snapshot(1, teams, queued);
    numbers(order::of_snapshot(&snapshot, &rules(quota), NOW).into_iter().map(|job| job.job))
}

fn fair() -> QuotaRules {
    QuotaRules { fair_share: true, ..QuotaRules::default() }
}

/// C28: team first, job second.
#[test]
fn the_team_that_has_used_least_comes_first_within_a_tier_and_its_jobs_by_their_order() {
    let used = |hours: u64| TeamUse { share_gpu_ms: hours * HOUR, ..team(50, 0) };
    let queued = [
        job(1, Some(0), 700, 1, 1),
        job(2, Some(1), 300, 1, 1),
        job(3, Some(1), 400, 1, 1),
        job(4, Some(0), 850, 1, 1), // a higher tier
        job(5, Some(0), 950, 1, 1), // urgent
    ];
    assert_eq!(ordered(&[used(9), used(2)], &queued, fair()), [5, 4, 3, 2, 1]);
    assert_eq!(ordered(&[used(2), used(9)], &queued, fair()), [5, 4, 1, 3, 2]);
    assert_eq!(ordered(&[used(9), used(2)], &queued, QuotaRules::default()), [5, 4, 1, 3, 2]);
}

#[test]
fn teams_take_turns_by_what_their_jobs_need_and_by_their_weight() {
    let even = |weight| TeamUse { weight, ..team(50, 0) };
    let jobs = |team, from| (from..from + 4).map(move |number| job(number, Some(team), 500, 1, 1));
    let queued: Vec<Queued> = jobs(0, 1).chain(jobs(1, 5)).collect();
    assert_eq!(ordered(&[even(1), even(1)], &queued, fair()), [1, 5, 2, 6, 3, 7, 4, 8]);
    assert_eq!(ordered(&[even(1), even(3)], &queued, fair()), [1, 5, 6, 7, 2, 8, 3, 4]);
}

#[test]
fn what_goes_by_its_age_goes_before_the_order_of_teams() {
    let mut rules = rules(fair());
    rules.starving_after_ms = Some(HOUR);
    let old = Queued { enqueued_ms: NOW - 7_200_000, ..job(1, Some(0), 0, 1, 1) };
    let heavy = TeamUse { share_gpu_ms: 99 * HOUR, ..team(50, 0) };
    let snapshot = snapshot(1, &[heavy, team(50, 0)], &[old, job(2, Some(1), 700, 1, 1)]);
    assert_eq!(numbers(order::of_snapshot(&snapshot, &rules, NOW).into_iter().map(|job| job.job)), [1, 2]);
}

/// A reservation was for the time when a job fits, and what it has to leave for others didn't yet: nothing was passed until
/// it did, and the pool ran empty.
#[test]
fn a_job_that_has_to_leave_a_reserve_is_passed_until_both_fit_and_not_delayed_beyond() {
    let quarter = Reserve { share_percent: 25, user_percent: None, ..interactive().reserves.remove(0) };
    let rules = rules(QuotaRules { reserves: vec![quarter], ..QuotaRules::default() });
    let running = |number, gpus, hours: i64| Running {
        holds: vec![Hold::gpus(0, gpus)],
        has_landed: true,
        expected_end_ms: Some(NOW + hours * 3_600_000),
        ..Running::new(id(number), Shape::gpus(gpus))
    };
    // 20 of 40 are free; 10 are kept, so 24 start once 34 are free: in ten hours, and not in one.
    let plan = |beside: Queued| {
        let queued = vec![job(1, None, 700, 24, 5), beside];
        let running = vec![running(90, 12, 1), running(91, 8, 10)];
        decide(&Snapshot { nodes: vec![Node::new(40)], running, queued, ..Snapshot::default() }, &rules, NOW)
    };
    let short = plan(job(2, None, 500, 10, 5));
    assert_eq!((started(&short), short.reservations[0].at_ms), (vec![2], NOW + 36_000_000));
    let long = plan(job(2, None, 500, 10, 20));
    assert_eq!(started(&long), [0_u128; 0]);
    assert!(matches!(reason(&long, 2), WaitReason::WouldDelay { head, .. } if head == id(1)));
    // Whoever it is kept for takes nothing that the first one waits for.
    let own = Queued { charge: Charge { reserve: Some(0), ..Charge::default() }, ..job(2, None, 500, 10, 20) };
    assert_eq!(started(&plan(own)), [2]);
}

/// Teams, jobs by (team, user, number, GPUs, hours), and the switches of a policy.
type Drawn = (Vec<(u64, u32)>, Vec<(u16, u32, u32, u32, u64)>, bool, bool);

fn drawn((teams, jobs, borrowing, fair_share): Drawn) -> (Snapshot, Rules) {
    let teams: Vec<TeamUse> = teams.into_iter().map(|(left, held)| team(left, held)).collect();
    let queued: Vec<Queued> = (1_u128..)
        .zip(jobs)
        .map(|(number, (team, user, priority, gpus, hours))| {
            let reserve = (priority % 3 == 0).then_some(0);
            let mut job = job(number, (team < 3).then_some(team), priority, gpus, hours);
            job.charge = Charge { reserve, user: reserve.and(Some(user)), ..job.charge };
            job
        })
        .collect();
    let quota = QuotaRules { borrowing, fair_share, ..interactive() };
    (snapshot(5, &teams, &queued), rules(quota))
}

proptest! {
    /// No cap is broken by any plan: GPUs of teams, shares of users, what is reserved; and only borrowers are over.
    #[test]
    fn no_plan_breaks_a_cap(
        teams in vec((0_u64..50, 0_u32..18), 3), jobs in vec((0_u16..4, 0_u32..3, 0_u32..1_000, 0_u32..9, 0_u64..30), 1..25),
        borrowing in proptest::bool::ANY, fair_share in proptest::bool::ANY,
    ) {
        let (snapshot, rules) = drawn((teams, jobs, borrowing, fair_share));
        let plan = decide(&snapshot, &rules, NOW);
        let job = |number: JobId| snapshot.queued.iter().find(|job| job.job == number).unwrap();
        let (mut teams, mut users, mut outside, mut inside) = (BTreeMap::new(), BTreeMap::new(), 0, 0);
        let mut hours: BTreeMap<u16, u64> = BTreeMap::new();
        for start in &plan.starts {
            let job = job(start.job);
            let gpus = job.shape.gpus;
            if let Some(team) = job.charge.team {
                *teams.entry((team, job.tier)).or_insert(0) += gpus;
                let day = &snapshot.teams[usize::from(team)].day;
                let used = day.used_gpu_ms + hours.get(&team).copied().unwrap_or(0);
                prop_assert_eq!(start.is_borrowed, gpus > 0 && used >= 50 * HOUR);
                *hours.entry(team).or_default() += job.expected_ms.unwrap().min(14 * HOUR) * u64::from(gpus);
            }
            match (job.charge.reserve, job.charge.user) {
                (Some(_), Some(user)) => { *users.entry(user).or_insert(0) += gpus; inside += gpus; }
                _ => outside += gpus,
            }
        }
        for ((team, tier), gpus) in teams {
            let held = snapshot.teams[usize::from(team)].gpus[&"high".into()];
            prop_assert!(tier != HIGH || gpus == 0 || held + gpus <= 16);
        }
        prop_assert!(users.values().all(|gpus| *gpus <= 4));
        // A part of the reserve that isn't used by those that it is for is free.
        prop_assert!(outside + inside.max(8) <= 40);
        prop_assert!(borrowing || plan.starts.iter().all(|start| !start.is_borrowed));
        let accounted = plan.starts.len() + plan.waiting.len();
        prop_assert_eq!(accounted, snapshot.queued.len());
    }

    /// The order of teams is total: any order of the input gives one output, with everybody in it.
    #[test]
    fn the_order_of_teams_is_total(
        teams in vec((0_u64..50, 0_u32..18), 3), jobs in vec((0_u16..4, 0_u32..3, 0_u32..1_000, 0_u32..9, 0_u64..30), 1..25),
        turn in 0_usize..25,
    ) {
        let (mut snapshot, rules) = drawn((teams, jobs, false, true));
        let of = |snapshot: &Snapshot| {
            order::of_snapshot(snapshot, &rules, NOW).into_iter().map(|job| job.job).collect::<Vec<_>>()
        };
        let before = of(&snapshot);
        prop_assert_eq!(before.len(), snapshot.queued.len());
        let middle = turn % snapshot.queued.len();
        snapshot.queued.rotate_left(middle);
        prop_assert_eq!(of(&snapshot), before);
    }
}
