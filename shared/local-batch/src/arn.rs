//! ARNs: written from names, and names read from ARNs.

/// Where the ARNs of this local Batch point.
#[derive(Clone, Copy, Debug)]
pub struct Arns<'a> {
    /// Region.
    pub region: &'a str,
    /// Account, twelve digits.
    pub account: &'a str,
}

impl Arns<'_> {
    fn batch(self, kind: &str, name: &str) -> String {
        format!("arn:aws:batch:{}:{}:{kind}/{name}", self.region, self.account)
    }

    /// ARN of a job.
    #[must_use]
    pub fn job(self, id: &str) -> String {
        self.batch("job", id)
    }

    /// ARN of a job queue.
    #[must_use]
    pub fn queue(self, name: &str) -> String {
        self.batch("job-queue", name)
    }

    /// ARN of a compute environment.
    #[must_use]
    pub fn environment(self, name: &str) -> String {
        self.batch("compute-environment", name)
    }

    /// ARN of a scheduling policy.
    #[must_use]
    pub fn policy(self, name: &str) -> String {
        self.batch("scheduling-policy", name)
    }

    /// ARN of one revision of a job definition.
    #[must_use]
    pub fn definition(self, name: &str, revision: i64) -> String {
        self.batch("job-definition", &format!("{name}:{revision}"))
    }

    /// ARN of the ECS container instance that stands for a node.
    #[must_use]
    pub fn container_instance(self, environment: &str, instance: &str) -> String {
        let id = format!("{:0<32}", instance.trim_start_matches("i-"));
        format!("arn:aws:ecs:{}:{}:container-instance/AWSBatch-{environment}/{id}", self.region, self.account)
    }

    /// ARN of the ECS task that stands for an attempt.
    #[must_use]
    pub fn task(self, environment: &str, task: &str) -> String {
        format!("arn:aws:ecs:{}:{}:task/AWSBatch-{environment}/{task}", self.region, self.account)
    }
}

/// The name in a Batch ARN (what follows the first slash), or the text itself when it is no ARN.
#[must_use]
pub fn name_of(name_or_arn: &str) -> &str {
    if name_or_arn.starts_with("arn:") {
        name_or_arn.split_once('/').map_or(name_or_arn, |(_, name)| name)
    } else {
        name_or_arn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_the_way_into_an_arn_and_back() {
        let arns = Arns { region: "us-east-1", account: "000000000000" };
        assert_eq!(arns.job("a:1"), "arn:aws:batch:us-east-1:000000000000:job/a:1");
        assert_eq!(name_of(&arns.definition("train", 7)), "train:7");
        assert_eq!(name_of("train:7"), "train:7");
    }
}
