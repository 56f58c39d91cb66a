//! Wiring, read from the environment once.

use osprey_model::pool::Pool;
use osprey_pipeline::context::Settings;
use osprey_policy::Policy;

/// What a function needs to know of the place it runs in.
#[derive(Debug)]
pub struct Config {
    /// The policy.
    pub policy: Policy,
    /// The pools.
    pub pools: Vec<Pool>,
    /// Time limits of the place.
    pub settings: Settings,
}

/// Everything that is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {} problem(s): {}", .0.len(), .0.join("; "))]
pub struct ConfigProblems(pub Vec<String>);

impl Config {
    /// Reads `OSPREY_POOLS` (a JSON list of pools) and `OSPREY_POLICY` (a policy's text; the default policy without
    /// it). `get` is how a variable is read.
    ///
    /// # Errors
    /// Names every problem.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigProblems> {
        let mut problems = Vec::new();
        let pools = pools(get("OSPREY_POOLS").as_deref(), &mut problems);
        let text = get("OSPREY_POLICY").unwrap_or_else(|| osprey_policy::DEFAULT.to_owned());
        let policy = match Policy::load(&text) {
            Ok(loaded) => Some(loaded.policy),
            Err(errors) => {
                problems.extend(errors.iter().map(|error| format!("`OSPREY_POLICY`: {error}")));
                None
            }
        };
        match policy {
            Some(policy) if problems.is_empty() => Ok(Self { policy, pools, settings: Settings::default() }),
            _ => Err(ConfigProblems(problems)),
        }
    }
}

fn pools(text: Option<&str>, problems: &mut Vec<String>) -> Vec<Pool> {
    let Some(text) = text else {
        problems.push("`OSPREY_POOLS` is not set; it is a JSON list of pools".to_owned());
        return Vec::new();
    };
    match serde_json::from_str::<Vec<Pool>>(text) {
        Ok(pools) if pools.is_empty() => {
            problems.push("`OSPREY_POOLS` lists no pool; at least one is needed".to_owned());
            pools
        }
        Ok(pools) => pools,
        Err(fault) => {
            problems.push(format!("`OSPREY_POOLS` is no JSON list of pools: {fault}"));
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOLS: &str = r#"[{"name":"main","mode":"direct","capacity":"on-demand","gpus_per_node":8,"nodes_max":4,
        "vcpus_per_node":null,"memory_mib_per_node":null,"queues":{"critical":"osprey-main-critical"},"fair_share":true}]"#;

    #[test]
    fn all_problems_are_told_at_once() {
        let problems = Config::read(|name| (name == "OSPREY_POLICY").then(|| "nonsense = 1".to_owned())).unwrap_err();
        let text = problems.to_string();
        assert!(text.contains("`OSPREY_POOLS` is not set; it is a JSON list of pools"), "{text}");
        assert!(text.contains("`OSPREY_POLICY`: "), "{text}");
    }

    #[test]
    fn pools_and_the_default_policy_make_a_configuration() {
        let config = Config::read(|name| (name == "OSPREY_POOLS").then(|| POOLS.to_owned())).unwrap();
        assert_eq!(config.pools.len(), 1);
        assert_eq!(config.settings, Settings::default());
    }
}
