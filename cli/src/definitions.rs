//! Job definitions from a file: one, a list, `DescribeJobDefinitions`' answer, or one a line.

use std::collections::BTreeSet;
use std::path::Path;

use osprey_model::definition::JobDefinition;
use osprey_model::message::words::{nearest, quote};
use serde_json::{Map, Value};

use crate::error::{CliError, ErrorCode};
use crate::{input, plain};

/// Members of `RegisterJobDefinition`, and those that `DescribeJobDefinitions` adds.
const MEMBERS: [&str; 19] = [
    "jobDefinitionName",
    "jobDefinitionArn",
    "revision",
    "status",
    "type",
    "schedulingPriority",
    "parameters",
    "retryStrategy",
    "containerProperties",
    "nodeProperties",
    "ecsProperties",
    "eksProperties",
    "timeout",
    "propagateTags",
    "platformCapabilities",
    "tags",
    "containerOrchestrationType",
    "consumableResourceProperties",
    "resourceRetentionPolicy",
];
/// Members of `containerProperties`.
const CONTAINER_MEMBERS: [&str; 24] = [
    "image",
    "name",
    "vcpus",
    "memory",
    "command",
    "jobRoleArn",
    "executionRoleArn",
    "environment",
    "resourceRequirements",
    "volumes",
    "mountPoints",
    "readonlyRootFilesystem",
    "privileged",
    "ulimits",
    "user",
    "instanceType",
    "linuxParameters",
    "logConfiguration",
    "secrets",
    "networkConfiguration",
    "fargatePlatformConfiguration",
    "enableExecuteCommand",
    "ephemeralStorage",
    "runtimePlatform",
];

/// The definitions of `--definitions`.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// In the order of the file.
    pub all: Vec<JobDefinition>,
    /// Names and revisions of those whose revision is said in the file.
    given: BTreeSet<(String, u32)>,
    /// The file; `None` when none was named.
    pub file: Option<String>,
}

impl Definitions {
    /// Reads the file; none without it. A definition without a revision has the next one of its name, from 1, as if
    /// the file were registered from its top.
    ///
    /// # Errors
    /// For a file that can't be read, or holds something else.
    pub fn load(path: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = path else { return Ok(Self::default()) };
        let mut all = Vec::new();
        for entry in input::requests(&input::read(path)?) {
            let read = serde_json::from_slice(&entry.bytes).map_err(|fault| plain::fault(&fault)).and_then(documents);
            all.extend(read.map_err(|fault| {
                let place = format!("`{}` line {}", path.display(), entry.line);
                CliError::new(ErrorCode::InvalidInput, format!("{place} holds no job definition: {fault}"))
                    .help("write what `aws batch describe-job-definitions` prints, or one definition a line")
            })?);
        }
        Ok(Self::numbered(all, Some(path.display().to_string())))
    }

    fn numbered(mut all: Vec<JobDefinition>, file: Option<String>) -> Self {
        let said = all.iter().filter(|definition| definition.revision != 0);
        let given = said.map(|definition| (definition.job_definition_name.clone(), definition.revision)).collect();
        number(&mut all);
        Self { all, given, file }
    }

    /// The definitions as they are to be registered: a revision that the file doesn't say (0) is up to the Batch.
    pub fn to_register(&self) -> impl Iterator<Item = JobDefinition> {
        self.all.iter().map(|definition| {
            let is_given = self.given.contains(&(definition.job_definition_name.clone(), definition.revision));
            JobDefinition { revision: if is_given { definition.revision } else { 0 }, ..definition.clone() }
        })
    }

    /// The definition that `name` (name, `name:revision` or ARN) stands for: the newest when several do.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&JobDefinition> {
        let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
        let (name, revision) = name.split_once(':').map_or((name, None), |(name, revision)| (name, Some(revision)));
        self.all
            .iter()
            .filter(|definition| definition.job_definition_name == name)
            .filter(|definition| revision.is_none_or(|wanted| definition.revision.to_string() == wanted))
            .max_by_key(|definition| definition.revision)
    }

    /// What the sender of a job should know whose definition isn't in the file; nothing without a file.
    #[must_use]
    pub fn warning(&self, name: &str) -> Option<String> {
        let file = self.file.as_ref().filter(|_| self.find(name).is_none())?;
        let known: Vec<String> =
            self.all.iter().map(|known| format!("{}:{}", known.job_definition_name, known.revision)).collect();
        let bare = name.rsplit_once('/').map_or(name, |(_, name)| name);
        let names =
            self.all.iter().map(|known| known.job_definition_name.as_str()).chain(known.iter().map(String::as_str));
        let near = nearest(bare, names).map(|near| format!("; did you mean {}?", quote(near))).unwrap_or_default();
        Some(format!("job definition {} isn't in `{file}` and is taken as given{near}", quote(name)))
    }
}

/// Gives a revision to those without one.
fn number(all: &mut [JobDefinition]) {
    let mut newest = std::collections::BTreeMap::<String, u32>::new();
    for definition in all {
        let before = newest.entry(definition.job_definition_name.clone()).or_default();
        if definition.revision == 0 {
            definition.revision = before.saturating_add(1);
        }
        *before = definition.revision.max(*before);
    }
}

/// The definitions of a document: one, a list, or what `DescribeJobDefinitions` answers.
fn documents(document: Value) -> Result<Vec<JobDefinition>, String> {
    match document {
        Value::Array(list) => list.into_iter().map(one).collect(),
        Value::Object(mut described) if described.contains_key("jobDefinitions") => {
            match described.remove("jobDefinitions") {
                Some(Value::Array(list)) => list.into_iter().map(one).collect(),
                _ => Err("`jobDefinitions` must be a list".to_owned()),
            }
        }
        other => one(other).map(|one| vec![one]),
    }
}

fn one(document: Value) -> Result<JobDefinition, String> {
    let Value::Object(object) = document else { return Err("an object is wanted".to_owned()) };
    let name = object.get("jobDefinitionName").and_then(Value::as_str).map(quote);
    let checked = check_container(&object).and_then(|()| plain::typed(object, &MEMBERS, &["jobDefinitionName"]));
    checked.map_err(|fault| name.map_or_else(|| fault.clone(), |name| format!("in {name}: {fault}")))
}

fn check_container(object: &Map<String, Value>) -> Result<(), String> {
    let Some(Value::Object(container)) = object.get("containerProperties") else { return Ok(()) };
    container.keys().try_for_each(|member| {
        plain::check_member(member, &CONTAINER_MEMBERS).map_err(|fault| format!("`containerProperties`: {fault}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, revision: u32) -> JobDefinition {
        JobDefinition { job_definition_name: name.to_owned(), revision, ..JobDefinition::default() }
    }

    fn of(text: &str) -> Result<Definitions, String> {
        let all = documents(serde_json::from_str(text).unwrap())?;
        Ok(Definitions::numbered(all, Some("d.json".to_owned())))
    }

    #[test]
    fn definitions_without_a_revision_are_numbered_from_one() {
        let definitions =
            of(r#"[{"jobDefinitionName":"a","tags":{"n":"1"}},{"jobDefinitionName":"a"},{"jobDefinitionName":"b"}]"#)
                .unwrap();
        assert_eq!(definitions.find("a").unwrap().revision, 2);
        assert!(definitions.find("a:1").unwrap().tags.contains_key("n"));
        assert!(definitions.find("arn:aws:batch:us-east-1:123456789012:job-definition/b:1").is_some());
        assert_eq!(definitions.find("b:2"), None);
    }

    #[test]
    fn only_a_revision_that_the_file_says_is_registered_as_it_is() {
        let definitions = of(r#"[{"jobDefinitionName":"a","revision":7},{"jobDefinitionName":"a"}]"#).unwrap();
        let registered = definitions.to_register().map(|definition| definition.revision);
        assert_eq!(registered.collect::<Vec<_>>(), [7, 0]);
        assert_eq!(definitions.find("a").unwrap().revision, 8);
    }

    #[test]
    fn one_that_is_not_in_the_file_is_told_with_the_nearest() {
        let definitions = of(r#"{"jobDefinitionName":"trainer"}"#).unwrap();
        assert_eq!(definitions.warning("trainer:1"), None);
        assert_eq!(
            definitions.warning("trianer").unwrap(),
            "job definition `trianer` isn't in `d.json` and is taken as given; did you mean `trainer`?"
        );
        assert_eq!(
            definitions.warning("trainer:2").unwrap(),
            "job definition `trainer:2` isn't in `d.json` and is taken as given; did you mean `trainer:1`?"
        );
        assert_eq!(Definitions::default().warning("x"), None);
    }

    #[test]
    fn faults_are_told_in_plain_words() {
        for (text, want) in [
            ("7", "an object is wanted"),
            ("{}", "`jobDefinitionName` is missing"),
            (
                r#"{"jobDefinitionName":"a","containerPropreties":{}}"#,
                "in `a`: there is no member `containerPropreties`; did you mean `containerProperties`?",
            ),
            (
                r#"{"jobDefinitionName":"a","containerProperties":{"comand":[]}}"#,
                "in `a`: `containerProperties`: there is no member `comand`; did you mean `command`?",
            ),
            (
                r#"{"jobDefinitionName":"a","containerProperties":{"command":"true"}}"#,
                "in `a`: `containerProperties`: a list is wanted; the text `true` was given",
            ),
            (
                r#"{"jobDefinitionName":"a","revision":"1"}"#,
                "in `a`: `revision`: a whole number from 0 is wanted; the text `1` was given",
            ),
        ] {
            assert_eq!(of(text).unwrap_err(), want, "{text}");
        }
    }

    #[test]
    fn a_definition_is_found_by_name_revision_and_arn() {
        let definitions = Definitions::numbered(vec![named("a", 1), named("a", 2), named("b", 1)], None);
        let revision = |name: &str| definitions.find(name).map(|found| found.revision);
        assert_eq!(revision("a"), Some(2));
        assert_eq!(revision("a:1"), Some(1));
        assert_eq!(revision("a:9"), None);
        assert_eq!(revision("arn:aws:batch:us-east-1:123456789012:job-definition/a:1"), Some(1));
        assert_eq!(revision("c"), None);
    }
}
