//! Tags of what is there: TagResource, UntagResource, ListTagsForResource; and DeregisterJobDefinition.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value, json};

use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
use crate::job::JobRow;
use crate::validate;

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// Who has tags, by its key in the store.
enum Holder {
    /// A job; its children share them.
    Spec(i64),
    Definition(String, i64),
    Queue(String),
    Environment(String),
}

impl LocalBatch {
    /// The tags of a job, job definition, job queue or compute environment.
    ///
    /// # Errors
    /// A ClientException when the ARN is none, or nothing has it.
    pub fn resource_tags(&self, arn: &str) -> Result<Tags, BatchError> {
        self.view(|change| change.tags_of(&change.holder(arn)?))
    }

    /// Adds tags, in place of those with the same key.
    ///
    /// # Errors
    /// As [`Self::resource_tags`], and a ClientException when there would be too many, or one is malformed.
    pub fn tag_resource(&self, arn: &str, tags: &Tags) -> Result<(), BatchError> {
        self.change_tags(arn, |own| own.extend(tags.clone()))
    }

    /// Removes the tags with these keys; one that isn't there is no error.
    ///
    /// # Errors
    /// As [`Self::resource_tags`].
    pub fn untag_resource(&self, arn: &str, keys: &[String]) -> Result<(), BatchError> {
        self.change_tags(arn, |own| own.retain(|key, _| !keys.contains(key)))
    }

    fn change_tags(&self, arn: &str, alter: impl FnOnce(&mut Tags)) -> Result<(), BatchError> {
        self.change_quietly(|change| {
            let holder = change.holder(arn)?;
            let mut tags = change.tags_of(&holder)?;
            alter(&mut tags);
            validate::tags(tags.iter())?;
            change.put_tags(&holder, &tags)
        })
    }

    /// Takes a revision of a definition out of use: no job can be submitted with it, and jobs that have it go on. One
    /// that is out of use already stays so.
    ///
    /// # Errors
    /// A ClientException when no revision is given or there is none such.
    pub fn deregister_job_definition(&self, name_or_arn: &str) -> Result<(), BatchError> {
        self.change_quietly(|change| {
            let (name, revision) = revision_of(crate::arn::name_of(name_or_arn))
                .ok_or_else(|| BatchError::client(format!("{name_or_arn} must have a revision")))?;
            let mut body = change.definition_body(&name, revision)?.ok_or_else(|| missing(name_or_arn))?;
            body.insert("status".to_owned(), json!("INACTIVE"));
            change.db.execute(
                "UPDATE job_definition SET active = 0, body = ?3 WHERE name = ?1 AND revision = ?2",
                params![name, revision, Value::Object(body).to_string()],
            )?;
            Ok(())
        })
    }

    /// Names of all scheduling policies, in their order.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn scheduling_policy_names(&self) -> Result<Vec<String>, BatchError> {
        self.view(|change| {
            let mut statement = change.db.prepare_cached("SELECT name FROM scheduling_policy ORDER BY name")?;
            let names = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>();
            Ok(names?)
        })
    }
}

fn missing(arn: &str) -> BatchError {
    BatchError::client(format!("{arn} does not exist"))
}

/// A name with its revision.
fn revision_of(name: &str) -> Option<(String, i64)> {
    let (name, revision) = name.split_once(':')?;
    Some((name.to_owned(), revision.parse().ok()?))
}

impl Change<'_> {
    fn holder(&self, arn: &str) -> Result<Holder, BatchError> {
        let malformed = || BatchError::client(format!("{arn} is not a valid resource ARN"));
        let (head, name) = arn.split_once('/').ok_or_else(malformed)?;
        let arns = self.arns();
        let prefix = format!("arn:aws:batch:{}:{}:", arns.region, arns.account);
        let holder = match head.strip_prefix(&prefix) {
            Some("job") => JobRow::by_id(self.db, name)?.map(|job| (job.spec, job.parent)),
            Some("job-definition") => {
                let (name, revision) = revision_of(name).ok_or_else(malformed)?;
                return match self.definition_body(&name, revision)? {
                    Some(_) => Ok(Holder::Definition(name, revision)),
                    None => Err(missing(arn)),
                };
            }
            Some("job-queue") => return self.known(arn, self.queue(name)?.is_some(), Holder::Queue(name.to_owned())),
            Some("compute-environment") => {
                let is_there = self.environment(name)?.is_some();
                return self.known(arn, is_there, Holder::Environment(name.to_owned()));
            }
            _ => return Err(malformed()),
        };
        match holder {
            Some((spec, None)) => Ok(Holder::Spec(spec)),
            Some((_, Some(_))) => Err(BatchError::client("ARNs of child jobs of array jobs are not supported")),
            None => Err(missing(arn)),
        }
    }

    fn known(&self, arn: &str, is_there: bool, holder: Holder) -> Result<Holder, BatchError> {
        if is_there { Ok(holder) } else { Err(missing(arn)) }
    }

    fn definition_body(&self, name: &str, revision: i64) -> Result<Option<Map<String, Value>>, BatchError> {
        let body: Option<String> = self
            .db
            .prepare_cached("SELECT body FROM job_definition WHERE name = ?1 AND revision = ?2")?
            .query_row(params![name, revision], |row| row.get(0))
            .optional()?;
        Ok(body.map(|body| serde_json::from_str(&body)).transpose()?)
    }

    fn spec_members(&self, spec: i64) -> Result<Map<String, Value>, BatchError> {
        let text: String = self
            .db
            .prepare_cached("SELECT detail FROM spec WHERE id = ?1")?
            .query_row(params![spec], |row| row.get(0))?;
        Ok(serde_json::from_str(&text)?)
    }

    fn tags_of(&self, holder: &Holder) -> Result<Tags, BatchError> {
        let tags = match holder {
            Holder::Spec(spec) => self.spec_members(*spec)?.shift_remove("tags"),
            Holder::Definition(name, revision) => {
                self.definition_body(name, *revision)?.and_then(|mut body| body.shift_remove("tags"))
            }
            Holder::Queue(name) => return Ok(self.queue(name)?.map(|queue| queue.tags).unwrap_or_default()),
            Holder::Environment(name) => return Ok(self.environment(name)?.map(|e| e.tags).unwrap_or_default()),
        };
        Ok(tags.map(serde_json::from_value).transpose()?.unwrap_or_default())
    }

    fn put_tags(&self, holder: &Holder, tags: &Tags) -> Result<(), BatchError> {
        let text = serde_json::to_string(tags)?;
        match holder {
            Holder::Spec(spec) => {
                let mut detail = self.spec_members(*spec)?;
                detail.insert("tags".to_owned(), json!(tags));
                let detail = Value::Object(detail).to_string();
                self.db.execute("UPDATE spec SET detail = ?2 WHERE id = ?1", params![spec, detail])?;
            }
            Holder::Definition(name, revision) => {
                let mut body = self.definition_body(name, *revision)?.unwrap_or_default();
                body.insert("tags".to_owned(), json!(tags));
                self.db.execute(
                    "UPDATE job_definition SET body = ?3 WHERE name = ?1 AND revision = ?2",
                    params![name, revision, Value::Object(body).to_string()],
                )?;
            }
            Holder::Queue(name) => {
                self.db.execute("UPDATE job_queue SET tags = ?2 WHERE name = ?1", params![name, text])?;
            }
            Holder::Environment(name) => {
                self.db.execute("UPDATE compute_environment SET tags = ?2 WHERE name = ?1", params![name, text])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tag_tests.rs"]
mod tests;
