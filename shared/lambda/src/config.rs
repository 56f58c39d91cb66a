//! Wiring, read from the environment once: everything that is wrong with it is told at once.

use std::collections::BTreeMap;

use osprey_aws::Wiring;
use osprey_model::message::words::{nearest, quote};
use osprey_model::pool::Pool;
use osprey_pipeline::context::Settings;
use osprey_policy::Policy;
use osprey_ports::QueueKind;

/// SubmitJob calls a second without `OSPREY_SUBMIT_RATE`: AWS takes 50 from an account, and it has other callers.
const SUBMIT_RATE: u32 = 40;
/// Most SubmitJob calls a second; AWS's limit for an account.
const SUBMIT_RATE_MAX: u32 = 50;
/// Longest settlement window: an hour is more than any signature lives.
const SETTLEMENT_SECONDS_MAX: i64 = 3_600;

/// What a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, as its folder and its binary are called.
    pub name: &'static str,
    /// The queues that it sends to.
    pub sends_to: &'static [QueueKind],
    /// Whether it tells people.
    pub notifies: bool,
    /// Whether it submits jobs.
    pub submits: bool,
}

/// What a function needs to know of the place it runs in.
#[derive(Debug)]
pub struct Config {
    /// The names of what it uses.
    pub wiring: Wiring,
    /// The policy until the table's is read: `OSPREY_POLICY`, or the default policy.
    pub policy: Policy,
    /// Its text.
    pub policy_text: String,
    /// The pools.
    pub pools: Vec<Pool>,
    /// Time limits of the place.
    pub settings: Settings,
    /// The dimension of the metrics.
    pub stack: String,
}

/// Everything that is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {}: {}", count(.0.len()), .0.join("; "))]
pub struct ConfigProblems(pub Vec<String>);

fn count(problems: usize) -> String {
    if problems == 1 { "a problem".to_owned() } else { format!("{problems} problems") }
}

/// The variables that are read, but for those of the queues.
const KNOWN: [&str; 11] = [
    "OSPREY_TABLE",
    "OSPREY_TOPIC_ARN",
    "OSPREY_EVENT_BUS",
    "OSPREY_POOLS",
    "OSPREY_POLICY",
    "OSPREY_SUBMIT_RATE",
    "OSPREY_STACK",
    "OSPREY_LOG",
    "OSPREY_CHECKPOINT_BASE",
    "OSPREY_SETTLEMENT_SECONDS",
    "OSPREY_PREEMPTION",
];

/// The variable that holds a queue's URL: `osprey-internal` is `OSPREY_INTERNAL_QUEUE_URL`.
#[must_use]
pub fn queue_variable(queue: QueueKind) -> String {
    format!("{}_QUEUE_URL", queue.name().replace('-', "_").to_uppercase())
}

impl Config {
    /// Reads the variables of `environment` that start with `OSPREY_`.
    ///
    /// # Errors
    /// Names every problem.
    pub fn read(function: &Function, environment: &BTreeMap<String, String>) -> Result<Self, ConfigProblems> {
        let mut reader = Reader { environment, problems: Vec::new() };
        reader.unknown();
        let wiring = reader.wiring(function);
        let settings = reader.settings();
        let pools = reader.pools();
        let (policy, policy_text) = reader.policy();
        let stack = reader.optional("OSPREY_STACK").unwrap_or_else(|| wiring.table.clone());
        match policy {
            Some(policy) if reader.problems.is_empty() => {
                Ok(Self { wiring, policy, policy_text, pools, settings, stack })
            }
            _ => Err(ConfigProblems(reader.problems)),
        }
    }
}

/// Reads variables and gathers what is wrong with them.
struct Reader<'a> {
    environment: &'a BTreeMap<String, String>,
    problems: Vec<String>,
}

impl Reader<'_> {
    /// A variable that may be left out. An empty one counts as left out: templates can't leave one out by condition.
    fn optional(&self, name: &str) -> Option<String> {
        self.environment.get(name).filter(|value| !value.trim().is_empty()).cloned()
    }

    fn required(&mut self, name: &str, what: &str) -> Option<String> {
        let value = self.optional(name);
        if value.is_none() {
            self.problems.push(format!("`{name}` is not set; it is {what}"));
        }
        value
    }

    fn unknown(&mut self) {
        let known: Vec<String> =
            KNOWN.into_iter().map(str::to_owned).chain(QueueKind::ALL.into_iter().map(queue_variable)).collect();
        for name in self.environment.keys().filter(|name| name.starts_with("OSPREY_") && !known.contains(name)) {
            let help = nearest(name, known.iter().map(String::as_str));
            let help = help.map(|near| format!("; did you mean {}?", quote(near))).unwrap_or_default();
            self.problems.push(format!("{} is no variable of Osprey{help}", quote(name)));
        }
    }

    fn settings(&mut self) -> Settings {
        let sound = Settings::default();
        let checkpoint_base = self.optional("OSPREY_CHECKPOINT_BASE");
        Settings { act_window_ms: self.act_window_ms(sound.act_window_ms), checkpoint_base, ..sound }
    }

    /// How long a submission may act after it was sent. Less than `sound` is right only where no signature outlives its
    /// call, as against an emulator.
    fn act_window_ms(&mut self, sound: i64) -> i64 {
        let Some(text) = self.optional("OSPREY_SETTLEMENT_SECONDS") else { return sound };
        if let Ok(seconds @ 1..=SETTLEMENT_SECONDS_MAX) = text.trim().parse::<i64>() {
            return seconds.saturating_mul(1_000);
        }
        self.problems.push(format!(
            "`OSPREY_SETTLEMENT_SECONDS` is {} where 1 to {SETTLEMENT_SECONDS_MAX} are allowed; AWS needs {}, which is what holds when it is left out",
            quote(&text),
            sound / 1_000
        ));
        sound
    }

    fn wiring(&mut self, function: &Function) -> Wiring {
        let table = self.required("OSPREY_TABLE", "the name of the DynamoDB table").unwrap_or_default();
        let queue_urls = QueueKind::ALL.into_iter().filter_map(|queue| Some((queue, self.queue_url(function, queue)?)));
        let queue_urls = queue_urls.collect();
        Wiring {
            table,
            queue_urls,
            topic_arn: self.topic(function),
            event_bus: self.optional("OSPREY_EVENT_BUS"),
            submit_rate: self.submit_rate(),
        }
    }

    fn queue_url(&mut self, function: &Function, queue: QueueKind) -> Option<String> {
        let name = queue_variable(queue);
        let url = if function.sends_to.contains(&queue) {
            self.required(
                &name,
                "the URL of an SQS queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/NAME",
            )
        } else {
            self.optional(&name)
        }?;
        if !url.starts_with("https://") && !url.starts_with("http://") {
            self.problems.push(format!("`{name}` is {}, which is no URL of an SQS queue", quote(&url)));
        }
        Some(url)
    }

    fn topic(&mut self, function: &Function) -> Option<String> {
        let name = "OSPREY_TOPIC_ARN";
        let arn = if function.notifies { self.required(name, "the ARN of an SNS topic") } else { self.optional(name) }?;
        if !arn.starts_with("arn:") {
            self.problems.push(format!("`{name}` is {}, which is no ARN of an SNS topic", quote(&arn)));
        }
        Some(arn)
    }

    fn submit_rate(&mut self) -> u32 {
        let Some(text) = self.optional("OSPREY_SUBMIT_RATE") else { return SUBMIT_RATE };
        match text.trim().parse() {
            Ok(rate @ 1..=SUBMIT_RATE_MAX) => rate,
            _ => {
                self.problems.push(format!(
                    "`OSPREY_SUBMIT_RATE` is {} where 1 to {SUBMIT_RATE_MAX} calls a second are allowed; AWS Batch takes no more from an account",
                    quote(&text)
                ));
                SUBMIT_RATE
            }
        }
    }

    /// Whether pools may evict at all.
    fn preemption(&mut self) -> bool {
        match self.optional("OSPREY_PREEMPTION").as_deref().map(str::trim) {
            None | Some("on") => true,
            Some("off") => false,
            Some(other) => {
                self.problems.push(format!("`OSPREY_PREEMPTION` is {} where `on` or `off` is meant", quote(other)));
                false
            }
        }
    }

    fn pools(&mut self) -> Vec<Pool> {
        let Some(text) = self.required("OSPREY_POOLS", "a JSON list of pools") else { return Vec::new() };
        let may_evict = self.preemption();
        match serde_json::from_str::<Vec<Pool>>(&text) {
            Ok(mut pools) => {
                if pools.is_empty() {
                    self.problems.push("`OSPREY_POOLS` lists no pool; at least one is needed".to_owned());
                }
                pools.iter_mut().for_each(|pool| pool.preemption &= may_evict);
                pools
            }
            Err(fault) => {
                self.problems.push(format!("`OSPREY_POOLS` is no JSON list of pools: {fault}"));
                Vec::new()
            }
        }
    }

    fn policy(&mut self) -> (Option<Policy>, String) {
        let text = self.optional("OSPREY_POLICY").unwrap_or_else(|| osprey_policy::DEFAULT.to_owned());
        match Policy::load(&text) {
            Ok(loaded) => (Some(loaded.policy), text),
            Err(errors) => {
                self.problems.extend(errors.iter().map(|error| format!("`OSPREY_POLICY`: {error}")));
                (None, text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOLS: &str = r#"[{"name":"main","mode":"direct","capacity":"on-demand","gpus_per_node":8,"nodes_max":4,
        "vcpus_per_node":null,"memory_mib_per_node":null,"queues":{"critical":"osprey-main-critical"},"fair_share":true}]"#;
    const WATCH: Function = Function { name: "watch", sends_to: &[QueueKind::Internal], notifies: true, submits: true };

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let given = environment(&[
            ("OSPREY_POLICY", "nonsense = 1"),
            ("OSPREY_SUBMIT_RATE", "400"),
            ("OSPREY_SETTLEMENT_SECONDS", "0"),
            ("OSPREY_TABEL", "osprey"),
            ("OSPREY_TOPIC_ARN", "operators"),
            ("OSPREY_EVENTS_QUEUE_URL", "osprey-events"),
            ("PATH", "/bin"),
        ]);
        let ConfigProblems(problems) = Config::read(&WATCH, &given).unwrap_err();
        let want = [
            "`OSPREY_TABEL` is no variable of Osprey; did you mean `OSPREY_TABLE`?",
            "`OSPREY_TABLE` is not set; it is the name of the DynamoDB table",
            "`OSPREY_INTERNAL_QUEUE_URL` is not set; it is the URL of an SQS queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/NAME",
            "`OSPREY_EVENTS_QUEUE_URL` is `osprey-events`, which is no URL of an SQS queue",
            "`OSPREY_TOPIC_ARN` is `operators`, which is no ARN of an SNS topic",
            "`OSPREY_SUBMIT_RATE` is `400` where 1 to 50 calls a second are allowed; AWS Batch takes no more from an account",
            "`OSPREY_SETTLEMENT_SECONDS` is `0` where 1 to 3600 are allowed; AWS needs 330, which is what holds when it is left out",
            "`OSPREY_POOLS` is not set; it is a JSON list of pools",
        ];
        assert_eq!(problems[..8], want);
        assert!(problems[8].starts_with("`OSPREY_POLICY`: "), "{problems:?}");
        let told = format!("the configuration has {} problems: `OSPREY_TABEL`", problems.len());
        assert!(ConfigProblems(problems).to_string().starts_with(&told));
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let given = environment(&[
            ("OSPREY_TABLE", "prod-osprey"),
            ("OSPREY_POOLS", POOLS),
            ("OSPREY_INTERNAL_QUEUE_URL", "https://sqs/internal"),
            ("OSPREY_TOPIC_ARN", "arn:aws:sns:eu-west-1:1:t"),
            ("OSPREY_POLICY", ""),
        ]);
        let config = Config::read(&WATCH, &given).unwrap();
        assert_eq!((config.pools.len(), config.stack.as_str()), (1, "prod-osprey"));
        assert_eq!((config.settings, config.wiring.submit_rate), (Settings::default(), 40));
        assert_eq!(config.policy_text, osprey_policy::DEFAULT);
        assert!(config.pools[0].preemption);
    }

    #[test]
    fn preemption_is_off_in_every_pool_of_a_stack_that_says_so() {
        let config = |switch: &str| {
            let given = environment(&[
                ("OSPREY_TABLE", "prod-osprey"),
                ("OSPREY_POOLS", POOLS),
                ("OSPREY_INTERNAL_QUEUE_URL", "https://sqs/internal"),
                ("OSPREY_TOPIC_ARN", "arn:aws:sns:eu-west-1:1:t"),
                ("OSPREY_PREEMPTION", switch),
            ]);
            Config::read(&WATCH, &given)
        };
        assert!(!config("off").unwrap().pools[0].preemption);
        assert!(config("on").unwrap().pools[0].preemption);
        let wrong = config("maybe").unwrap_err();
        assert_eq!(wrong.0, ["`OSPREY_PREEMPTION` is `maybe` where `on` or `off` is meant"]);
    }
}
