//! Roles: a function may do what its ports call, and nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{at, deep, parse, resources, target, template};
use crate::{Checked, assert_none, list, text};

/// What the runtime and the queues that feed a function need, and encryption.
const OF_THE_PLACE: [&str; 7] = [
    "kms:Decrypt",
    "kms:GenerateDataKey",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
];
/// Calls for which AWS Batch knows no resources (service authorization reference).
const WITHOUT_RESOURCES: [&str; 5] = [
    "batch:DescribeComputeEnvironments",
    "batch:DescribeJobDefinitions",
    "batch:DescribeJobQueues",
    "batch:DescribeJobs",
    "batch:ListJobs",
];

/// What each function calls, as the adapters say.
fn called(function: &str) -> BTreeSet<String> {
    osprey_aws::actions::of(function).unwrap_or_default().into_iter().map(str::to_owned).collect()
}

/// One or several, as a list.
fn each(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |all| all.iter().collect())
}

fn actions(statement: &Value) -> BTreeSet<String> {
    each(at(statement, "/Action")).into_iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn statements(role: &Value) -> Vec<&Value> {
    list(role, "Policies").iter().flat_map(|policy| deep(policy, &["PolicyDocument", "Statement"])).collect()
}

fn offences(template: &Value) -> Vec<String> {
    let roles = resources(template, "AWS::IAM::Role");
    let mut found = Vec::new();
    for (name, function) in resources(template, "AWS::Serverless::Function") {
        let Some(role) = roles.get(target(at(function, "/Role"))) else {
            found.push(format!("{name} has no role of its own"));
            continue;
        };
        let code = text(function, "CodeUri").split('/').nth(2).unwrap_or_default();
        let given: BTreeSet<String> = statements(role).into_iter().flat_map(actions).collect();
        let wanted = called(code);
        found.extend(wanted.difference(&given).map(|missing| format!("{name} calls {missing} and may not")));
        let needless = given.difference(&wanted).filter(|action| !OF_THE_PLACE.contains(&action.as_str()));
        found.extend(needless.map(|needless| format!("{name} may {needless} and never calls it")));
    }
    for (name, role) in &roles {
        found.extend(statements(role).into_iter().flat_map(boundless).map(|offence| format!("{name}: {offence}")));
    }
    found
}

/// Actions with a star, and actions on everything.
fn boundless(statement: &Value) -> Vec<String> {
    let on_everything = each(at(statement, "/Resource")).contains(&&json!("*"));
    let wide =
        |action: &String| action.contains('*') || (on_everything && !WITHOUT_RESOURCES.contains(&action.as_str()));
    actions(statement).iter().filter(|action| wide(action)).map(|action| format!("{action} is not bounded")).collect()
}

#[test]
fn every_function_may_do_what_it_calls_and_nothing_else() -> Checked {
    assert_none("template.yaml", &offences(&template()?));
    Ok(())
}

#[test]
fn every_role_may_be_bounded() -> Checked {
    let template = template()?;
    for (name, role) in resources(&template, "AWS::IAM::Role") {
        let bound = role["PermissionsBoundary"]["Fn::If"].get(0);
        assert_eq!(bound, Some(&json!("HasBoundary")), "{name}");
    }
    Ok(())
}

#[test]
fn a_right_too_many_or_too_few_is_found() -> Checked {
    let whole = crate::read("template.yaml")?;
    for (from, to, want) in [
        ("                  - dynamodb:DeleteItem\n", "", "calls dynamodb:DeleteItem and may not"),
        (
            "Action: sns:Publish\n                Resource: !Ref Topic",
            "Action: [sns:Publish, sns:Subscribe]\n                Resource: !Ref Topic",
            "may sns:Subscribe and never calls it",
        ),
        ("[batch:SubmitJob, batch:TagResource]", "batch:*", "batch:* is not bounded"),
        ("Resource: !GetAtt WatchFunction.Arn", "Resource: \"*\"", "lambda:InvokeFunction is not bounded"),
    ] {
        let found = offences(&parse(&whole.replacen(from, to, 1))?);
        assert!(found.iter().any(|offence| offence.contains(want)), "{want}: {found:?}");
    }
    Ok(())
}
