//! From flags, JSON or a line of a file to a body that can be sent, with the job's id in it.

use std::path::Path;

use osprey_model::id::JobId;
use osprey_model::message::tags::JOB_ID_TAG;
use osprey_model::message::{self, Message, Rejection};
use osprey_model::request::SubmitJobRequest;
use serde_json::{Map, Value};

use super::shorthand::{self, Shape};
use super::{SubmitJobArgs, new_id};
use crate::error::{CliError, ErrorCode};
use crate::{input, plain};

/// A job ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Its id.
    pub id: JobId,
    /// `jobName`.
    pub name: String,
    /// The request, with the id in its tags.
    pub request: SubmitJobRequest,
    /// The body.
    pub body: String,
}

/// The job of the flags.
pub fn of(args: &SubmitJobArgs) -> Result<Prepared, CliError> {
    let mut request = base(args.cli_input_json.as_deref())?;
    put_texts(args, &mut request);
    put_structures(args, &mut request)?;
    put_maps(args, &mut request)?;
    for (member, option) in [("jobName", "--job-name"), ("jobDefinition", "--job-definition")] {
        if !request.contains_key(member) {
            return Err(CliError::new(ErrorCode::Usage, format!("`{option}` is missing"))
                .help("name the job and its definition by flags or with `--cli-input-json`"));
        }
    }
    of_body(Value::Object(request).to_string().as_bytes())
}

/// The job of a body: checked for its shape, with an id chosen when it has none.
pub fn of_body(body: &[u8]) -> Result<Prepared, CliError> {
    let request = match message::parse_bytes(body).map_err(|rejection| refused(&rejection))? {
        Message::Submit(request) => *request,
        Message::Action(_) => {
            return Err(CliError::new(ErrorCode::InvalidInput, "the body is an action and no job")
                .help("`osprey cancel`, `requeue`, `hold` and `release` send actions"));
        }
    };
    let chosen = message::chosen_job_id(&request).map_err(|refusal| refused(&refusal.into()))?;
    let id = chosen.unwrap_or_else(new_id);
    let name = request.job_name.clone();
    let mut request = request;
    request.tags.get_or_insert_default().insert(JOB_ID_TAG.to_owned(), id.to_string());
    let body = serde_json::to_string(&request).map_err(|fault| CliError::failed(fault.to_string()))?;
    Ok(Prepared { id, name, request, body })
}

fn refused(rejection: &Rejection) -> CliError {
    CliError::new(ErrorCode::Refused, rejection.to_string()).help("nothing was sent")
}

/// The request of `--cli-input-json`, or an empty one.
fn base(text: Option<&str>) -> Result<Map<String, Value>, CliError> {
    let Some(text) = text else { return Ok(Map::new()) };
    let read = text_of(text)?;
    let fault = |fault: String| {
        CliError::new(ErrorCode::Usage, format!("`--cli-input-json` can't be read: {fault}"))
            .help("write a JSON object, or `file://PATH` of one")
    };
    match serde_json::from_str(&read) {
        Ok(Value::Object(request)) => Ok(request),
        Ok(_) => Err(fault("it is JSON and no object".to_owned())),
        Err(error) => Err(fault(plain::fault(&error))),
    }
}

/// An option's text, or that of the file that `file://PATH` names, as on the AWS command line.
fn text_of(given: &str) -> Result<String, CliError> {
    match given.strip_prefix("file://") {
        Some(path) => input::read_text(Path::new(path)),
        None => Ok(given.to_owned()),
    }
}

/// An option's value: JSON or shorthand, written out or in a file.
fn given(option: &str, text: &str, shape: Shape) -> Result<Value, CliError> {
    shorthand::parse(option, &text_of(text)?, shape)
}

fn put_texts(args: &SubmitJobArgs, request: &mut Map<String, Value>) {
    let texts = [
        ("jobName", &args.job_name),
        ("jobDefinition", &args.job_definition),
        ("jobQueue", &args.job_queue),
        ("shareIdentifier", &args.share_identifier),
    ];
    for (member, text) in texts {
        if let Some(text) = text {
            request.insert(member.to_owned(), Value::from(text.as_str()));
        }
    }
    if let Some(number) = args.scheduling_priority_override {
        request.insert("schedulingPriorityOverride".to_owned(), Value::from(number));
    }
    if args.propagate_tags || args.no_propagate_tags {
        request.insert("propagateTags".to_owned(), Value::from(args.propagate_tags));
    }
}

fn put_structures(args: &SubmitJobArgs, request: &mut Map<String, Value>) -> Result<(), CliError> {
    let structures = [
        ("containerOverrides", "--container-overrides", &args.container_overrides),
        ("nodeOverrides", "--node-overrides", &args.node_overrides),
        ("arrayProperties", "--array-properties", &args.array_properties),
        ("retryStrategy", "--retry-strategy", &args.retry_strategy),
        ("timeout", "--timeout", &args.timeout),
        ("eksPropertiesOverride", "--eks-properties-override", &args.eks_properties_override),
        ("ecsPropertiesOverride", "--ecs-properties-override", &args.ecs_properties_override),
        (
            "consumableResourcePropertiesOverride",
            "--consumable-resource-properties-override",
            &args.consumable_resource_properties_override,
        ),
    ];
    for (member, option, text) in structures {
        if let Some(text) = text {
            request.insert(member.to_owned(), given(option, text, Shape::Members)?);
        }
    }
    let mut dependencies = Vec::new();
    for text in &args.depends_on {
        match given("--depends-on", text, Shape::Members)? {
            Value::Array(several) => dependencies.extend(several),
            one => dependencies.push(one),
        }
    }
    if !dependencies.is_empty() {
        request.insert("dependsOn".to_owned(), Value::Array(dependencies));
    }
    Ok(())
}

/// Tags and parameters: flags add to what the JSON has, and win over it.
fn put_maps(args: &SubmitJobArgs, request: &mut Map<String, Value>) -> Result<(), CliError> {
    for (member, option, texts) in [("tags", "--tags", &args.tags), ("parameters", "--parameters", &args.parameters)] {
        for text in texts {
            let Value::Object(more) = given(option, text, Shape::Texts)? else {
                return Err(CliError::new(ErrorCode::Usage, format!("`{option}` must be a map of names and texts")));
            };
            let known = request.entry(member).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(known) = known {
                known.extend(more);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: SubmitJobArgs,
    }

    fn prepare(words: &[&str]) -> Result<Value, CliError> {
        let line = Line::parse_from(["x"].iter().chain(words));
        of(&line.args).map(|prepared| serde_json::from_str(&prepared.body).unwrap())
    }

    #[test]
    fn flags_make_the_request_that_the_aws_command_line_makes() {
        let id = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
        let tags = format!("osprey:job-id={id},team=search");
        let request = prepare(&[
            "--job-name",
            "a",
            "--job-definition",
            "d:1",
            "--tags",
            &tags,
            "--container-overrides",
            "command=sleep,3,resourceRequirements=[{type=GPU,value=4}]",
            "--depends-on",
            "jobId=x",
            "jobId=y,type=N_TO_N",
            "--retry-strategy",
            "attempts=3",
            "--no-propagate-tags",
        ])
        .unwrap();
        assert_eq!(
            request,
            serde_json::json!({
                "jobName": "a",
                "jobDefinition": "d:1",
                "dependsOn": [{ "jobId": "x" }, { "jobId": "y", "type": "N_TO_N" }],
                "containerOverrides": {
                    "command": ["sleep", "3"],
                    "resourceRequirements": [{ "type": "GPU", "value": "4" }],
                },
                "retryStrategy": { "attempts": 3 },
                "propagateTags": false,
                "tags": { "osprey:job-id": id, "team": "search" },
            })
        );
    }

    #[test]
    fn flags_win_over_the_json_and_tags_add_to_it() {
        let json = r#"{"jobName":"a","jobDefinition":"d","tags":{"team":"x","user":"y"}}"#;
        let request = prepare(&["--cli-input-json", json, "--job-name", "b", "--tags", "team=z"]).unwrap();
        assert_eq!(request.get("jobName").unwrap(), "b");
        assert_eq!(request.pointer("/tags/team").unwrap(), "z");
        assert_eq!(request.pointer("/tags/user").unwrap(), "y");
        assert!(request.pointer("/tags/osprey:job-id").is_some());
    }

    #[test]
    fn what_is_missing_and_what_is_wrong_is_said_before_anything_is_sent() {
        assert_eq!(prepare(&["--job-name", "a"]).unwrap_err().message, "`--job-definition` is missing");
        let wrong = ["--job-name", "a", "--job-definition", "d", "--timeout", "attemptDurationSeconds=soon"];
        let error = prepare(&wrong).unwrap_err();
        assert_eq!(error.code, ErrorCode::Refused);
        assert!(error.message.contains("`timeout.attemptDurationSeconds`"), "{}", error.message);
    }
}
