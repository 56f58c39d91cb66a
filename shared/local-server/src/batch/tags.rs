//! TagResource, UntagResource and ListTagsForResource: one path, three verbs.

use serde_json::{Value, json};

use super::{SHAPES, policies, queues};
use crate::auth;
use crate::encoding::percent_decoded;
use crate::failure::{Failure, Protocol};
use crate::http::Call;
use crate::service::Service;

/// Answers a call below `/v1/tags/`; `encoded` is the ARN as it travels.
pub fn answer(service: &Service, call: &Call, encoded: &str) -> Result<Value, Failure> {
    let arn = String::from_utf8_lossy(&percent_decoded(encoded)).into_owned();
    match call.method.as_str() {
        "GET" => Ok(json!({ "tags": tags_of(service, &arn)? })),
        "POST" => add(service, call, &arn),
        "DELETE" => remove(service, &keys(&call.query), &arn),
        _ => Err(auth::missing(Protocol::Batch)),
    }
}

type Tags = std::collections::BTreeMap<String, String>;

fn tags_of(service: &Service, arn: &str) -> Result<Tags, Failure> {
    match policy_of(service, arn)? {
        Some(name) => policies::tags_of(service, &name),
        None => Ok(service.batch().resource_tags(arn)?),
    }
}

fn add(service: &Service, call: &Call, arn: &str) -> Result<Value, Failure> {
    let input = SHAPES.read_with("TagResourceRequest", &call.body, [("resourceArn", arn)])?;
    let new = queues::tags(&input);
    match policy_of(service, arn)? {
        Some(name) => {
            let mut tags = policies::tags_of(service, &name)?;
            tags.extend(new);
            policies::put_tags(service, &name, &tags)?;
        }
        None => service.batch().tag_resource(arn, &new)?,
    }
    Ok(json!({}))
}

fn remove(service: &Service, keys: &[String], arn: &str) -> Result<Value, Failure> {
    if keys.is_empty() {
        return Err(Failure::client("tagKeys must be specified."));
    }
    match policy_of(service, arn)? {
        Some(name) => {
            let mut tags = policies::tags_of(service, &name)?;
            tags.retain(|key, _| !keys.contains(key));
            policies::put_tags(service, &name, &tags)?;
        }
        None => service.batch().untag_resource(arn, keys)?,
    }
    Ok(json!({}))
}

/// The name of a scheduling policy, whose tags are kept here; `None` for everything else.
fn policy_of(service: &Service, arn: &str) -> Result<Option<String>, Failure> {
    if !arn.starts_with(&service.arn("scheduling-policy", "")) {
        return Ok(None);
    }
    Ok(Some(policies::found(service, arn)?.name))
}

fn keys(query: &str) -> Vec<String> {
    let values = query.split('&').filter_map(|pair| pair.strip_prefix("tagKeys="));
    values.map(|value| String::from_utf8_lossy(&percent_decoded(value)).into_owned()).collect()
}
