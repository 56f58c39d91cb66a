//! Job definitions: registered under a name, each change a new revision.

use osprey_model::definition::JobDefinition;
use rusqlite::{OptionalExtension, params};
use serde::Serialize;

use crate::arn::name_of;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
use crate::multinode::Gang;
use crate::{requirement, validate};

/// Largest definition, in bytes of its JSON.
pub const DEFINITION_BYTES_MAX: usize = 24 * 1024;

/// Answer of RegisterJobDefinition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredDefinition {
    /// Name.
    pub job_definition_name: String,
    /// ARN with revision.
    pub job_definition_arn: String,
    /// Revision, from 1.
    pub revision: u32,
}

impl LocalBatch {
    /// Registers a definition as the next revision of its name; its own revision, ARN and status are ignored.
    ///
    /// # Errors
    /// A ClientException when a name, size, amount or strategy is out of range.
    pub fn register_job_definition(&self, definition: &JobDefinition) -> Result<RegisteredDefinition, BatchError> {
        check(definition)?;
        self.change(|change| change.register(definition))
    }

    /// Registers a definition unless the newest active revision of its name says the same. One with a revision (not 0)
    /// gets that very one.
    ///
    /// # Errors
    /// Those of [`Self::register_job_definition`], and when its revision is taken by another definition.
    pub fn ensure_job_definition(&self, definition: &JobDefinition) -> Result<RegisteredDefinition, BatchError> {
        check(definition)?;
        let (name, revision) = (definition.job_definition_name.as_str(), definition.revision);
        let wanted = if revision == 0 { name.to_owned() } else { format!("{name}:{revision}") };
        self.change(|change| match change.find_definition(&wanted)? {
            Some(known) if known == change.as_registered(definition, known.revision) => Ok(RegisteredDefinition {
                job_definition_name: known.job_definition_name,
                job_definition_arn: known.job_definition_arn,
                revision: known.revision,
            }),
            Some(_) if revision != 0 => {
                Err(BatchError::client(format!("{wanted} is registered already, and a revision never changes")))
            }
            _ if revision != 0 => change.register_as(definition, revision),
            _ => change.register(definition),
        })
    }

    /// Definitions by name, `name:revision` or ARN; all of a name when no revision is given, all there are when
    /// `names` is empty. Newest revision first.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn describe_job_definitions(&self, names: &[String]) -> Result<Vec<JobDefinition>, BatchError> {
        self.view(|change| {
            let mut statement =
                change.db.prepare_cached("SELECT body FROM job_definition ORDER BY name, revision DESC")?;
            let bodies = statement.query_map([], |row| row.get::<_, String>(0))?;
            let mut found = Vec::new();
            for body in bodies {
                let definition: JobDefinition = serde_json::from_str(&body?)?;
                if names.is_empty() || names.iter().any(|name| is_named(&definition, name)) {
                    found.push(definition);
                }
            }
            Ok(found)
        })
    }
}

fn is_named(definition: &JobDefinition, name: &str) -> bool {
    match name_of(name).split_once(':') {
        Some((name, revision)) => definition.job_definition_name == name && definition.revision.to_string() == revision,
        None => definition.job_definition_name == name_of(name),
    }
}

fn check(definition: &JobDefinition) -> Result<(), BatchError> {
    validate::name("Job definition name", &definition.job_definition_name)?;
    let bytes = serde_json::to_vec(definition)?.len();
    if bytes > DEFINITION_BYTES_MAX {
        let got = bytes.div_ceil(1024);
        return Err(BatchError::client(format!("Job definition size must be less than 24 KiB, got {got} KiB")));
    }
    validate::priority("schedulingPriority", definition.scheduling_priority)?;
    if let Some(strategy) = &definition.retry_strategy {
        validate::retry(strategy.attempts, strategy.evaluate_on_exit.as_deref().unwrap_or_default())?;
    }
    validate::timeout(definition.timeout.as_ref().and_then(|t| t.attempt_duration_seconds))?;
    validate::tags(definition.tags.iter())?;
    match &definition.node_properties {
        Some(nodes) => return Gang::spelled_out(nodes, None).map(|_| ()),
        None if definition.kind == "multinode" => {
            return Err(BatchError::client("nodeProperties must be specified for type multinode"));
        }
        None => {}
    }
    let Some(container) = &definition.container_properties else { return Ok(()) };
    validate::environment(&container.environment)?;
    let requirements = requirement::merged_requirements(container, None);
    requirement::need_of(&requirements).map(|_| ()).map_err(BatchError::client)
}

impl Change<'_> {
    fn as_registered(&self, definition: &JobDefinition, revision: u32) -> JobDefinition {
        let name = &definition.job_definition_name;
        JobDefinition {
            revision,
            job_definition_arn: self.arns().definition(name, i64::from(revision)),
            status: Some("ACTIVE".to_owned()),
            ..definition.clone()
        }
    }

    fn register(&self, definition: &JobDefinition) -> Result<RegisteredDefinition, BatchError> {
        let name = &definition.job_definition_name;
        let newest: Option<i64> = self
            .db
            .prepare_cached("SELECT max(revision) FROM job_definition WHERE name = ?1")?
            .query_row(params![name], |row| row.get(0))?;
        let revision = u32::try_from(newest.unwrap_or(0) + 1);
        self.register_as(definition, revision.map_err(|_| BatchError::server("too many revisions"))?)
    }

    fn register_as(&self, definition: &JobDefinition, revision: u32) -> Result<RegisteredDefinition, BatchError> {
        let name = &definition.job_definition_name;
        let registered = self.as_registered(definition, revision);
        // One that was taken out of use may come back.
        self.db
            .prepare_cached(
                "INSERT INTO job_definition (name, revision, active, body) VALUES (?1, ?2, 1, ?3)
                 ON CONFLICT DO UPDATE SET active = 1, body = excluded.body",
            )?
            .execute(params![name, revision, serde_json::to_string(&registered)?])?;
        Ok(RegisteredDefinition {
            job_definition_name: name.clone(),
            job_definition_arn: registered.job_definition_arn,
            revision,
        })
    }

    /// A definition by name (newest active revision), `name:revision` or ARN.
    pub fn find_definition(&self, name_or_arn: &str) -> Result<Option<JobDefinition>, BatchError> {
        let name = name_of(name_or_arn);
        let (name, revision) = match name.split_once(':') {
            Some((name, revision)) => (name, Some(revision.parse::<i64>().unwrap_or(-1))),
            None => (name, None),
        };
        let body: Option<String> = self
            .db
            .prepare_cached(
                "SELECT body FROM job_definition WHERE name = ?1 AND active = 1 AND (?2 IS NULL OR revision = ?2)
                 ORDER BY revision DESC LIMIT 1",
            )?
            .query_row(params![name, revision], |row| row.get(0))
            .optional()?;
        Ok(body.map(|body| serde_json::from_str(&body)).transpose()?)
    }
}
