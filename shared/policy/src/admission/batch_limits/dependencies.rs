//! `dependsOn`: how many, and that each entry says one thing.

use osprey_model::limits::DEPENDENCIES_MAX;
use osprey_model::message::words::{nearest, quote};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::{JobDependency, SubmitJobRequest};

use crate::admission::Findings;

pub(super) fn check(request: &SubmitJobRequest, findings: &mut Findings) {
    let dependencies = request.depends_on.as_deref().unwrap_or_default();
    findings.refuse(too_many(dependencies.len()));
    let is_array = request.array_properties.as_ref().is_some_and(|array| array.size.is_some());
    for (index, dependency) in dependencies.iter().enumerate() {
        let path = format!("dependsOn[{index}]");
        if dependency.kind.as_deref() == Some("N_TO_N") {
            findings.warn(format!(
                "`{path}` is `N_TO_N`: the job waits until the whole array has succeeded, not child by child"
            ));
        }
        findings.refuse(fault(dependency, &path, is_array).map(|m| Refusal::new(ReasonCode::InvalidDependency, m)));
    }
}

fn too_many(given: usize) -> Option<Refusal> {
    (given > DEPENDENCIES_MAX).then(|| {
        let message = format!(
            "`dependsOn` takes at most {DEPENDENCIES_MAX} jobs; {given} were given; let some meet in a job of their own and depend on that"
        );
        Refusal::new(ReasonCode::TooManyDependencies, message)
    })
}

fn fault(dependency: &JobDependency, path: &str, is_array: bool) -> Option<String> {
    let names_job = dependency.job_id.as_deref().is_some_and(|id| !id.trim().is_empty());
    match dependency.kind.as_deref() {
        None if names_job => None,
        None => Some(format!("`{path}` names no job; give its `jobId`")),
        Some("SEQUENTIAL") if names_job => {
            Some(format!("`{path}` is `SEQUENTIAL`, which orders the children of this job; leave out its `jobId`"))
        }
        Some("N_TO_N") if !names_job => {
            Some(format!("`{path}` is `N_TO_N`, which waits for another array; give its `jobId`"))
        }
        Some(kind @ ("SEQUENTIAL" | "N_TO_N")) => (!is_array).then(|| {
            format!(
                "`{path}` is `{kind}`, which only an array can be; give `arrayProperties.size` or leave out the `type`"
            )
        }),
        Some(other) => {
            let help = nearest(other, ["N_TO_N", "SEQUENTIAL"]).map(|near| format!("; did you mean {}?", quote(near)));
            let help = help.unwrap_or_default();
            Some(format!("`{path}.type` must be `N_TO_N` or `SEQUENTIAL`; {} was given{help}", quote(other)))
        }
    }
}
