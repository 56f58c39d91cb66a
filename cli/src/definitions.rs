//! Job definitions from a file: one, a list, `DescribeJobDefinitions`' answer, or one a line.

use std::path::Path;

use osprey_model::definition::JobDefinition;
use serde::Deserialize;

use crate::error::{CliError, ErrorCode};
use crate::input;

/// The definitions of `--definitions`.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// In the order of the file.
    pub all: Vec<JobDefinition>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    List(Vec<JobDefinition>),
    Described {
        #[serde(rename = "jobDefinitions")]
        job_definitions: Vec<JobDefinition>,
    },
    One(Box<JobDefinition>),
}

impl Definitions {
    /// Reads the file; none without it.
    ///
    /// # Errors
    /// For a file that can't be read, or holds something else.
    pub fn load(path: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = path else { return Ok(Self::default()) };
        let mut all = Vec::new();
        for entry in input::requests(&input::read(path)?) {
            let document = serde_json::from_slice(&entry.bytes).map_err(|fault| {
                let place = format!("`{}` line {}", path.display(), entry.line);
                CliError::new(ErrorCode::InvalidInput, format!("{place} holds no job definition: {fault}"))
                    .help("write what `aws batch describe-job-definitions` prints, or one definition a line")
            })?;
            match document {
                Document::List(list) | Document::Described { job_definitions: list } => all.extend(list),
                Document::One(one) => all.push(*one),
            }
        }
        Ok(Self { all })
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, revision: u32) -> JobDefinition {
        JobDefinition { job_definition_name: name.to_owned(), revision, ..JobDefinition::default() }
    }

    #[test]
    fn a_definition_is_found_by_name_revision_and_arn() {
        let definitions = Definitions { all: vec![named("a", 1), named("a", 2), named("b", 1)] };
        let revision = |name: &str| definitions.find(name).map(|found| found.revision);
        assert_eq!(revision("a"), Some(2));
        assert_eq!(revision("a:1"), Some(1));
        assert_eq!(revision("a:9"), None);
        assert_eq!(revision("arn:aws:batch:us-east-1:123456789012:job-definition/a:1"), Some(1));
        assert_eq!(revision("c"), None);
    }
}
