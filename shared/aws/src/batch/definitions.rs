//! Job definitions.

use std::time::Duration;

use osprey_model::definition::JobDefinition;
use osprey_ports::{CallError, DescribeJobDefinition};
use serde::Deserialize;

use super::{AwsBatch, call_error, unreadable};
use crate::wire::Answer;

/// How long a definition is good for. A newer revision is seen that much later, in each process by itself.
pub const LIFETIME: Duration = Duration::from_secs(60);

const ACTION: &str = "batch:DescribeJobDefinitions";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    #[serde(default)]
    job_definitions: Vec<JobDefinition>,
    #[serde(default)]
    next_token: Option<String>,
}

impl AwsBatch {
    /// A definition with its revision, or by its ARN.
    async fn exactly(&self, name: &str) -> Result<Option<JobDefinition>, CallError> {
        let answer = Answer::default();
        let request = self.client.describe_job_definitions().job_definitions(name);
        request.customize().interceptor(answer.clone()).send().await.map_err(call_error(ACTION))?;
        let found: Described = answer.read().map_err(unreadable(ACTION))?;
        Ok(found.job_definitions.into_iter().max_by_key(|definition| definition.revision))
    }

    /// The newest active revision of a name. Batch promises no order, so every page is read.
    async fn newest(&self, name: &str) -> Result<Option<JobDefinition>, CallError> {
        let (mut newest, mut token): (Option<JobDefinition>, Option<String>) = (None, None);
        loop {
            let answer = Answer::default();
            let request = self
                .client
                .describe_job_definitions()
                .job_definition_name(name)
                .status("ACTIVE")
                .set_next_token(token.take());
            request.customize().interceptor(answer.clone()).send().await.map_err(call_error(ACTION))?;
            let page: Described = answer.read().map_err(unreadable(ACTION))?;
            newest = page.job_definitions.into_iter().chain(newest).max_by_key(|definition| definition.revision);
            token = page.next_token;
            if token.is_none() {
                return Ok(newest);
            }
        }
    }
}

impl DescribeJobDefinition for AwsBatch {
    async fn describe_job_definition(&self, name: &str) -> Result<Option<JobDefinition>, CallError> {
        if let Some(kept) = self.definitions.get(name) {
            return Ok(Some(kept));
        }
        let found = if name.contains(':') { self.exactly(name).await? } else { self.newest(name).await? };
        if let Some(found) = &found {
            self.definitions.put(name, found);
        }
        Ok(found)
    }
}
