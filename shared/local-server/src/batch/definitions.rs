//! Job definitions.

use osprey_model::definition::JobDefinition;
use serde_json::{Value, json};

use super::{Input, Members as _, word};
use crate::failure::Failure;
use crate::page;
use crate::service::Service;

/// Most definitions of a page, and most that can be asked for by name.
const PAGE_MAX: usize = 100;

pub fn register(service: &Service, input: &Input) -> Result<Value, Failure> {
    word(input, "type", &[("container", ()), ("multinode", ())])?;
    let kind = input.text("type").unwrap_or_default();
    let properties = ["containerProperties", "ecsProperties", "eksProperties", "nodeProperties"];
    let given: Vec<&str> = properties.into_iter().filter(|name| input.contains_key(*name)).collect();
    match (kind, given.as_slice()) {
        ("container", ["containerProperties" | "ecsProperties" | "eksProperties"])
        | ("multinode", ["nodeProperties"]) => {}
        ("multinode", _) => return Err(Failure::client("nodeProperties must be specified for type multinode")),
        _ => {
            let message = "Exactly one of containerProperties, ecsProperties and eksProperties must be specified for \
                           type container";
            return Err(Failure::client(message));
        }
    }
    let definition: JobDefinition = serde_json::from_value(Value::Object(input.clone()))?;
    Ok(json!(service.batch().register_job_definition(&definition)?))
}

pub fn describe(service: &Service, input: &Input) -> Result<Value, Failure> {
    let names = input.texts("jobDefinitions");
    if names.len() > PAGE_MAX {
        let message = format!("jobDefinitions must have at most {PAGE_MAX} entries, got {}", names.len());
        return Err(Failure::client(message));
    }
    let (name, status) = (input.text("jobDefinitionName"), input.text("status"));
    let mut all = service.batch().describe_job_definitions(&names)?;
    all.retain(|one| {
        name.is_none_or(|name| one.job_definition_name == name)
            && status.is_none_or(|status| one.status.as_deref() == Some(status))
    });
    let (part, next) = page::cut(all, input.page(), PAGE_MAX)?;
    let definitions = part.iter().map(seen).collect::<Result<Vec<_>, _>>()?;
    Ok(super::kept::listed("jobDefinitions", &definitions, next))
}

fn seen(definition: &JobDefinition) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(definition)?;
    if let Some(members) = value.as_object_mut() {
        let orchestration = if definition.eks_properties.is_some() { "EKS" } else { "ECS" };
        members.insert("containerOrchestrationType".to_owned(), json!(orchestration));
        members.entry("tags").or_insert_with(|| json!({}));
    }
    Ok(value)
}

pub fn deregister(service: &Service, input: &Input) -> Result<Value, Failure> {
    service.batch().deregister_job_definition(input.text("jobDefinition").unwrap_or_default())?;
    Ok(json!({}))
}
