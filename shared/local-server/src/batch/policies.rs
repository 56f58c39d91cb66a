//! Scheduling policies.

use std::collections::BTreeMap;

use osprey_local_batch::arn::name_of;
use osprey_local_batch::{FairShare, SchedulingPolicy, validate};
use serde_json::{Value, json};

use super::queues::tags;
use super::{Input, Members as _, kept};
use crate::failure::{Failure, Protocol};
use crate::page;
use crate::service::Service;

const KIND: &str = "scheduling-policy-tags";
/// Most policies of a page, and most that can be asked for at once.
const PAGE_MAX: usize = 100;

pub fn create(service: &Service, input: &Input) -> Result<Value, Failure> {
    let name = input.text("name").unwrap_or_default();
    let tags = tags(input);
    validate::tags(tags.iter())?;
    let arn = service.batch().create_scheduling_policy(name, &fair_share(input)?)?;
    put_tags(service, name, &tags)?;
    Ok(json!({ "name": name, "arn": arn }))
}

pub fn update(service: &Service, input: &Input) -> Result<Value, Failure> {
    let arn = input.text("arn").unwrap_or_default();
    let known = found(service, arn)?;
    if input.contains_key("fairsharePolicy") || input.contains_key("quotaSharePolicy") {
        service.batch().ensure_scheduling_policy(&known.name, &fair_share(input)?)?;
    }
    Ok(json!({}))
}

pub fn describe(service: &Service, input: &Input) -> Result<Value, Failure> {
    let arns = input.texts("arns");
    if arns.len() > PAGE_MAX {
        return Err(Failure::client(format!("arns must have at most {PAGE_MAX} entries, got {}", arns.len())));
    }
    let found = service.batch().describe_scheduling_policies(&arns)?;
    let seen = |policy: &SchedulingPolicy| {
        let mut value = serde_json::to_value(policy)?;
        if let Some(members) = value.as_object_mut() {
            members.insert("tags".to_owned(), json!(tags_of(service, &policy.name)?));
        }
        Ok(value)
    };
    let policies = found.iter().map(seen).collect::<Result<Vec<_>, Failure>>()?;
    Ok(json!({ "schedulingPolicies": policies }))
}

pub fn list(service: &Service, input: &Input) -> Result<Value, Failure> {
    let names = service.batch().scheduling_policy_names()?;
    let (part, next) = page::cut(names, input.page(), PAGE_MAX)?;
    let arns: Vec<Value> = part.iter().map(|name| json!({ "arn": service.arn("scheduling-policy", name) })).collect();
    Ok(kept::listed("schedulingPolicies", &arns, next))
}

/// The policy of an ARN.
pub fn found(service: &Service, arn: &str) -> Result<SchedulingPolicy, Failure> {
    let found = service.batch().describe_scheduling_policies(&[arn.to_owned()])?;
    let known = found.into_iter().find(|policy| policy.arn == arn || policy.name == name_of(arn));
    known.ok_or_else(|| Failure::client(format!("{arn} does not exist")))
}

/// The tags of a policy.
pub fn tags_of(service: &Service, name: &str) -> Result<BTreeMap<String, String>, Failure> {
    Ok(serde_json::from_value(Value::Object(kept::read(service, KIND, name)?)).unwrap_or_default())
}

/// Replaces the tags of a policy.
pub fn put_tags(service: &Service, name: &str, tags: &BTreeMap<String, String>) -> Result<(), Failure> {
    validate::tags(tags.iter())?;
    let body = tags.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    kept::write(service, KIND, name, &body)
}

fn fair_share(input: &Input) -> Result<FairShare, Failure> {
    if input.contains_key("quotaSharePolicy") {
        return Err(Failure::unsupported(Protocol::Batch, "quota share policies"));
    }
    let Some(policy) = input.get("fairsharePolicy") else { return Ok(FairShare::default()) };
    let policy: FairShare = serde_json::from_value(policy.clone())?;
    let is_share = |id: &str| {
        let body = id.strip_suffix('*').unwrap_or(id);
        !body.is_empty() && id.len() <= 255 && body.chars().all(|c| c.is_ascii_alphanumeric())
    };
    if !policy.share_distribution.iter().all(|share| is_share(&share.share_identifier)) {
        let message = "shareIdentifier must be at most 255 alphanumeric characters, optionally followed by *";
        return Err(Failure::client(message));
    }
    Ok(policy)
}
