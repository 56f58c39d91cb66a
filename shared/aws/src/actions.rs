//! The IAM actions of each function: those of its ports, no more. The template's roles are compared with this list.

/// Actions of the store's verbs.
const STORE: [&str; 6] = [
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
];
/// Actions of whoever submits and stops jobs.
const SUBMIT: [&str; 5] = [
    "batch:DescribeJobDefinitions",
    "batch:DescribeJobQueues",
    "batch:DescribeJobs",
    "batch:SubmitJob",
    "batch:TagResource",
];

/// A function's name, as its folder and its binary are called, and the actions that it calls, sorted.
#[must_use]
pub fn of(function: &str) -> Option<Vec<&'static str>> {
    let further: &[&[&'static str]] = match function {
        "submit" => &[&SUBMIT, &["batch:ListJobs", "batch:TerminateJob", "events:PutEvents", "sqs:SendMessage"]],
        "schedule" => &[
            &SUBMIT,
            &[
                "batch:DescribeComputeEnvironments",
                "batch:TerminateJob",
                "ecs:DescribeContainerInstances",
                "ecs:ListContainerInstances",
                "events:PutEvents",
                "sqs:SendMessage",
            ],
        ],
        "requeue" => &[&[
            "batch:DescribeJobDefinitions",
            "batch:DescribeJobs",
            "batch:ListJobs",
            "batch:TerminateJob",
            "events:PutEvents",
            "sqs:SendMessage",
        ]],
        "watch" => {
            &[&SUBMIT, &["batch:ListJobs", "batch:TerminateJob", "events:PutEvents", "sns:Publish", "sqs:SendMessage"]]
        }
        "dead-letter" => &[&["sns:Publish", "sqs:SendMessage"]],
        _ => return None,
    };
    let mut actions: Vec<_> = STORE.into_iter().chain(further.iter().flat_map(|some| some.iter().copied())).collect();
    actions.sort_unstable();
    Some(actions)
}

/// The actions that the service integration of a queue-fed function needs besides.
pub const OF_A_QUEUE_CONSUMER: [&str; 3] = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_function_asks_for_an_action_twice() {
        for function in ["submit", "schedule", "requeue", "watch", "dead-letter"] {
            let actions = of(function).unwrap();
            let mut once = actions.clone();
            once.dedup();
            assert_eq!(actions, once, "{function}");
        }
        assert_eq!(of("other"), None);
    }
}
