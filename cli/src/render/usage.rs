//! What teams use, as text and as JSON.

use std::fmt::Write as _;

use jiff::Timestamp;
use osprey_policy::share::{Amount, Budget, Limit, Reached, TeamUse};
use serde_json::{Value, json};

use super::table::Columns;

/// What one team uses.
pub struct Used {
    /// The team.
    pub team: String,
    /// Its use.
    pub team_use: TeamUse,
}

/// One line a team, and what became of its time.
pub fn list(used: &[Used]) -> String {
    let mut columns =
        Columns::new(&["TEAM", ">DAY", ">OF", ">7 DAYS", ">OF", "GPUS", ">BORROWED", ">WASTE", ">QUOTA LEFT"]);
    for Used { team, team_use } in used {
        let TeamUse { day, week, receipt, .. } = team_use;
        columns.row([
            team.clone(),
            hours(day.used_gpu_ms),
            limit(day),
            hours(week.used_gpu_ms),
            limit(week),
            gpus(team_use),
            team_use.borrowed_gpus.to_string(),
            percent(receipt.waste_permille),
            if has_quota(team_use) { percent(receipt.quota_permille) } else { "-".to_owned() },
        ]);
    }
    let mut text = columns.render();
    for Used { team, team_use } in used {
        let _ = write!(text, "\n\n{team}: {}", team_use.receipt);
        if let Some(reached) = team_use.over_hours((0, 0)) {
            let _ = write!(text, "\n{team}: {reached}{}", passes(reached));
        }
    }
    text
}

/// Whether anything is limited that waste could cut.
fn has_quota(team_use: &TeamUse) -> bool {
    team_use.day.limit_gpu_ms.is_some() || team_use.week.limit_gpu_ms.is_some()
}

fn hours(gpu_ms: u64) -> String {
    Amount(Limit::GpuHoursDay, gpu_ms).to_string()
}

fn limit(budget: &Budget) -> String {
    budget.limit_gpu_ms.map_or_else(|| "-".to_owned(), hours)
}

fn percent(permille: u32) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

/// GPUs that are held, by tier, of those that may be.
fn gpus(team_use: &TeamUse) -> String {
    let tiers = team_use.gpus.keys().chain(team_use.gpus_max.keys()).collect::<std::collections::BTreeSet<_>>();
    let held = |tier| team_use.gpus.get(tier).copied().unwrap_or(0);
    let told = tiers.into_iter().filter(|tier| held(tier) > 0 || team_use.gpus_max.contains_key(*tier)).map(|tier| {
        let most = team_use.gpus_max.get(tier).map(|most| format!(" of {most}")).unwrap_or_default();
        format!("{tier} {}{most}", held(tier))
    });
    let text = told.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "-".to_owned() } else { text }
}

fn passes(reached: Reached) -> String {
    let at = reached.passes_ms.and_then(|at| Timestamp::from_millisecond(at).ok());
    at.map(|at| format!("; it is within them again at {at:.0} at the earliest")).unwrap_or_default()
}

/// GPU-milliseconds as GPU-hours.
#[expect(clippy::cast_precision_loss, reason = "285,000 years of GPU time fit exactly")]
fn in_hours(gpu_ms: u64) -> f64 {
    gpu_ms as f64 / 3_600_000.0
}

fn ratio(permille: u32) -> f64 {
    f64::from(permille) / 1000.0
}

/// A team as JSON.
pub fn summary(used: &Used) -> Value {
    let Used { team, team_use } = used;
    let TeamUse { gpus, gpus_max, borrowed_gpus, day, week, receipt, .. } = team_use;
    let window = |budget: &Budget| {
        json!({
            "used": in_hours(budget.used_gpu_ms),
            "promised": in_hours(budget.promised_gpu_ms),
            "quota": budget.limit_gpu_ms.map(in_hours),
        })
    };
    let over = team_use.over_hours((0, 0)).map(|reached| {
        json!({
            "limit": reached.limit,
            "passes_at": reached.passes_ms.and_then(|at| Timestamp::from_millisecond(at).ok()),
            "sentence": reached.to_string(),
        })
    });
    json!({
        "team": team,
        "gpu_hours_day": window(day),
        "gpu_hours_week": window(week),
        "gpus": gpus,
        "gpus_max": gpus_max,
        "borrowed_gpus": borrowed_gpus,
        "over": over,
        "waste": {
            "useful_gpu_hours": in_hours(receipt.time.useful),
            "crash_gpu_hours": in_hours(receipt.time.crash),
            "eviction_gpu_hours": in_hours(receipt.time.eviction),
            "idle_gpu_hours": in_hours(receipt.time.idle),
            "queue_gpu_hours": in_hours(receipt.time.queue),
            "restarts": receipt.restarts,
            "ratio": ratio(receipt.waste_permille),
            "quota_left": ratio(receipt.quota_permille),
            "sentence": receipt.to_string(),
        },
    })
}

#[cfg(test)]
mod tests {
    use osprey_policy::Policy;
    use osprey_policy::share::waste::GpuTime;
    use osprey_policy::share::{Account, DAY_MS, Day, Held};

    use super::*;

    const HOUR: u64 = 3_600_000;

    /// C30: team X has used 49 GPU-hours, 13 of them for restarts after crashes; team Y 38 clean ones.
    fn x_and_y() -> Vec<Used> {
        let text =
            "name = \"t\"\n[[tier]]\nname = \"high\"\nat_least = 0\nteam_gpus_max = 16\n[quota]\ngpu_hours_day = 50\n";
        let policy = Policy::load(text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
        let now_ms = 20_000 * DAY_MS + 43_200_000;
        let day = |useful, crash, restarts| {
            let time = GpuTime { useful: useful * HOUR, crash: crash * HOUR, ..GpuTime::default() };
            Day { starts_ms: 20_000 * DAY_MS, gpu_ms: (useful + crash) * HOUR, time, restarts }
        };
        let held = Held {
            tier: "high".into(),
            gpus: 8,
            started_ms: Some(now_ms - 1_800_000),
            expected_ms: Some(HOUR),
            is_borrowed: true,
        };
        let account = |day, holds: &[Held]| Account { days: vec![day], holds: holds.to_vec() };
        let of = |team: &str, account: Account| Used {
            team: team.to_owned(),
            team_use: account.team_use(team, &policy, now_ms),
        };
        vec![of("x", account(day(36, 13, 13), &[held])), of("y", account(day(38, 0, 0), &[]))]
    }

    /// C29, C30
    #[test]
    fn teams_are_told_with_their_quota_and_the_receipt_of_their_waste() {
        assert_eq!(
            list(&x_and_y()),
            "\
TEAM   DAY    OF  7 DAYS  OF  GPUS          BORROWED   WASTE  QUOTA LEFT
x     53.0  44.3    53.0   -  high 8 of 16         8  26.5 %      88.5 %
y     38.0  50.0    38.0   -  high 0 of 16         0   0.0 %     100.0 %

x: 36.0 GPU-hours useful, 13.0 lost to crashes with 13 restarts, 0.0 held idle: 26.5 % waste leaves 88.5 % of the quota; \
0.0 lost to evictions and 0.0 waited for don't count
x: its team has used or promised 57.0 of its 44.3 GPU-hours of the day; it is within them again at 2024-10-05T00:00:00Z \
at the earliest

y: 38.0 GPU-hours useful, 0.0 lost to crashes with 0 restarts, 0.0 held idle: 0.0 % waste leaves 100.0 % of the quota; \
0.0 lost to evictions and 0.0 waited for don't count"
        );
    }

    #[test]
    fn a_team_as_json_has_what_it_used_what_it_may_and_its_receipt() {
        let x = summary(&x_and_y()[0]);
        assert_eq!(x["gpu_hours_day"], json!({"used": 53.0, "promised": 4.0, "quota": 44.25}));
        assert_eq!(x["gpu_hours_week"]["quota"], Value::Null);
        assert_eq!((x["gpus"].clone(), x["gpus_max"].clone()), (json!({"high": 8}), json!({"high": 16})));
        assert_eq!(x["over"]["limit"], "gpu_hours_day");
        assert_eq!(x["waste"]["crash_gpu_hours"], 13.0);
        assert_eq!((x["waste"]["ratio"].clone(), x["waste"]["quota_left"].clone()), (json!(0.265), json!(0.885)));
        assert_eq!((x["waste"]["restarts"].clone(), x["borrowed_gpus"].clone()), (json!(13), json!(8)));
    }
}
