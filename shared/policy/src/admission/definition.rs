//! Whether there is something to run.

use osprey_model::definition::JobDefinition;
use osprey_model::message::words::quote;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;

/// On AWS a job needs a registered definition, whose image has a command of its own. Where none is required there are
/// no images, and only a command can be run.
pub(super) fn check(
    request: &SubmitJobRequest,
    definition: Option<&JobDefinition>,
    is_required: bool,
) -> Option<Refusal> {
    let name = quote(&request.job_definition);
    match definition {
        _ if request.job_definition.trim().is_empty() => {
            let message = "`jobDefinition` is empty; name a job definition, such as `train:3`";
            Some(Refusal::new(ReasonCode::UnknownDefinition, message))
        }
        None if is_required => {
            let message = format!("the job definition {name} is not registered; register it or correct the name");
            Some(Refusal::new(ReasonCode::UnknownDefinition, message))
        }
        None if !has_command(request) => {
            let message = format!(
                "there is nothing to run: the job definition {name} is not registered, and the request has no command; give `containerOverrides.command` or register the definition"
            );
            Some(Refusal::new(ReasonCode::MissingCommand, message))
        }
        Some(definition) if !is_required && is_registered_without_command(definition) && !has_command(request) => {
            let message = format!(
                "there is nothing to run: neither the job definition {name} nor the request has a command; give `containerOverrides.command`"
            );
            Some(Refusal::new(ReasonCode::MissingCommand, message))
        }
        _ => None,
    }
}

fn has_command(request: &SubmitJobRequest) -> bool {
    let says = |command: &Option<Vec<String>>| command.as_ref().is_some_and(|command| !command.is_empty());
    let own = request.container_overrides.iter().any(|container| says(&container.command));
    let nodes = request.node_overrides.iter().flat_map(|nodes| nodes.node_property_overrides.iter().flatten());
    let of_nodes =
        nodes.filter_map(|range| range.container_overrides.as_ref()).any(|container| says(&container.command));
    let tasks = request.ecs_properties_override.iter().flat_map(|ecs| ecs.task_properties.iter().flatten());
    let of_tasks = tasks.flat_map(|task| task.containers.iter().flatten()).any(|container| says(&container.command));
    let pods = request.eks_properties_override.iter().filter_map(|eks| eks.pod_properties.as_ref());
    let of_pods = pods.flat_map(|pod| pod.containers.iter().flatten()).any(|c| says(&c.command) || says(&c.args));
    own || of_nodes || of_tasks || of_pods
}

/// Only a single container can be judged; tasks, pods and nodes aren't run where no definition is required.
fn is_registered_without_command(definition: &JobDefinition) -> bool {
    definition.revision > 0
        && definition.container_properties.as_ref().is_some_and(|container| container.command.is_empty())
}
