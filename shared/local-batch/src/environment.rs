//! Compute environments: nodes with GPU slots, numbered so that no device is on two nodes.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use crate::arn::name_of;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
use crate::validate;

/// Whether hosts stay or may be reclaimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EnvironmentKind {
    /// On-Demand: hosts stay.
    #[default]
    Ec2,
    /// Spot: hosts may be reclaimed.
    Spot,
}

impl EnvironmentKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ec2 => "EC2",
            Self::Spot => "SPOT",
        }
    }
}

/// Whether a queue or environment takes new work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum State {
    /// It does.
    #[default]
    Enabled,
    /// It doesn't; what runs goes on.
    Disabled,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "ENABLED",
            Self::Disabled => "DISABLED",
        }
    }

    pub(crate) fn parse(word: &str) -> Self {
        if word == "DISABLED" { Self::Disabled } else { Self::Enabled }
    }
}

/// A compute environment to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputeEnvironmentRequest {
    /// Name, at most 128 characters.
    pub compute_environment_name: String,
    /// EC2 or SPOT.
    pub kind: EnvironmentKind,
    /// Whether it takes jobs.
    pub state: State,
    /// Number of nodes.
    pub nodes: u32,
    /// GPU slots of each node.
    pub gpus_per_node: u32,
    /// vCPUs of each node; generous by default, since the machine's own scheduler shares its cores.
    pub vcpus_per_node: u32,
    /// MiB of each node; generous by default.
    pub memory_mib_per_node: u64,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

impl Default for ComputeEnvironmentRequest {
    fn default() -> Self {
        Self {
            compute_environment_name: String::new(),
            kind: EnvironmentKind::Ec2,
            state: State::Enabled,
            nodes: 1,
            gpus_per_node: 0,
            vcpus_per_node: 1_024,
            memory_mib_per_node: 4 * 1024 * 1024,
            tags: BTreeMap::new(),
        }
    }
}

/// What to change of a compute environment; `None` leaves a member as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComputeEnvironmentUpdate {
    /// Whether it takes jobs.
    pub state: Option<State>,
    /// Number of nodes; nodes beyond it take no more jobs.
    pub nodes: Option<u32>,
    /// GPU slots of each node; only while nothing runs on it.
    pub gpus_per_node: Option<u32>,
    /// vCPUs of each node.
    pub vcpus_per_node: Option<u32>,
    /// MiB of each node.
    pub memory_mib_per_node: Option<u64>,
}

/// A compute environment as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComputeEnvironment {
    /// Name.
    pub compute_environment_name: String,
    /// ARN.
    pub compute_environment_arn: String,
    /// EC2 or SPOT.
    #[serde(rename = "type")]
    pub kind: EnvironmentKind,
    /// Whether it takes jobs.
    pub state: State,
    /// Number of nodes.
    pub nodes: u32,
    /// GPU slots of each node.
    pub gpus_per_node: u32,
    /// vCPUs of each node.
    pub vcpus_per_node: u32,
    /// MiB of each node.
    pub memory_mib_per_node: u64,
    /// Nodes that are always up; all of them unless [`LocalBatch::set_scaling`] says otherwise.
    pub min_nodes: u32,
    /// Nodes that are up or starting up now.
    pub desired_nodes: u32,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

impl LocalBatch {
    /// Creates a compute environment and its nodes; answers its ARN.
    ///
    /// # Errors
    /// A ClientException when the name is wrong or taken, or there would be no node.
    pub fn create_compute_environment(&self, request: &ComputeEnvironmentRequest) -> Result<String, BatchError> {
        check(request)?;
        self.change(|change| {
            if change.environment(&request.compute_environment_name)?.is_some() {
                return Err(BatchError::client("Object already exists"));
            }
            change.create_environment(request)
        })
    }

    /// Creates the compute environment or brings the one of that name to what is asked; answers its ARN.
    ///
    /// # Errors
    /// Those of create and update.
    pub fn ensure_compute_environment(&self, request: &ComputeEnvironmentRequest) -> Result<String, BatchError> {
        check(request)?;
        self.change(|change| match change.environment(&request.compute_environment_name)? {
            None => change.create_environment(request),
            Some(known) if known.kind != request.kind => {
                Err(BatchError::client("The type of a compute environment can't be changed"))
            }
            Some(known) => {
                let update = ComputeEnvironmentUpdate {
                    state: Some(request.state),
                    nodes: Some(request.nodes),
                    gpus_per_node: Some(request.gpus_per_node),
                    vcpus_per_node: Some(request.vcpus_per_node),
                    memory_mib_per_node: Some(request.memory_mib_per_node),
                };
                change.update_environment(known, &update)
            }
        })
    }

    /// Changes a compute environment; answers its ARN.
    ///
    /// # Errors
    /// A ClientException when it doesn't exist, or its node shape is to change while jobs run on it.
    pub fn update_compute_environment(
        &self,
        name_or_arn: &str,
        update: &ComputeEnvironmentUpdate,
    ) -> Result<String, BatchError> {
        self.change(|change| {
            let known = change.environment(name_of(name_or_arn))?;
            let known = known.ok_or_else(|| BatchError::client(format!("{name_or_arn} does not exist")))?;
            change.update_environment(known, update)
        })
    }

    /// Compute environments by name or ARN; all when `names` is empty.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn describe_compute_environments(&self, names: &[String]) -> Result<Vec<ComputeEnvironment>, BatchError> {
        self.view(|change| {
            let mut statement = change.db.prepare_cached(&format!("{SELECT} ORDER BY name"))?;
            let all = statement.query_map([], |row| change.environment_from(row))?;
            let wanted = |e: &ComputeEnvironment| {
                names.is_empty() || names.iter().any(|name| name_of(name) == e.compute_environment_name)
            };
            Ok(all.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().filter(wanted).collect())
        })
    }
}

const SELECT: &str = "SELECT name, kind, state, nodes, gpus, vcpus_milli / 1000, memory_mib, tags,
     min(coalesce(min_nodes, nodes), nodes),
     (SELECT count(*) FROM node n WHERE n.environment = compute_environment.name AND n.up = 1 AND n.retired = 0)
     FROM compute_environment";

fn check(request: &ComputeEnvironmentRequest) -> Result<(), BatchError> {
    validate::name("Compute environment name", &request.compute_environment_name)?;
    validate::tags(request.tags.iter())?;
    if request.nodes == 0 {
        return Err(BatchError::client("A compute environment must have at least 1 node"));
    }
    Ok(())
}

impl Change<'_> {
    fn environment_from(&self, row: &Row<'_>) -> rusqlite::Result<ComputeEnvironment> {
        let name: String = row.get(0)?;
        let kind = if row.get_ref(1)?.as_str()? == "SPOT" { EnvironmentKind::Spot } else { EnvironmentKind::Ec2 };
        Ok(ComputeEnvironment {
            compute_environment_arn: self.arns().environment(&name),
            compute_environment_name: name,
            kind,
            state: State::parse(row.get_ref(2)?.as_str()?),
            nodes: row.get(3)?,
            gpus_per_node: row.get(4)?,
            vcpus_per_node: row.get(5)?,
            memory_mib_per_node: u64::try_from(row.get::<_, i64>(6)?).unwrap_or(0),
            tags: serde_json::from_str(row.get_ref(7)?.as_str()?).unwrap_or_default(),
            min_nodes: row.get(8)?,
            desired_nodes: row.get(9)?,
        })
    }

    pub fn environment(&self, name: &str) -> rusqlite::Result<Option<ComputeEnvironment>> {
        let mut statement = self.db.prepare_cached(&format!("{SELECT} WHERE name = ?1"))?;
        statement.query_row(params![name], |row| self.environment_from(row)).optional()
    }

    fn create_environment(&self, request: &ComputeEnvironmentRequest) -> Result<String, BatchError> {
        let name = &request.compute_environment_name;
        self.db.execute(
            "INSERT INTO compute_environment (name, kind, state, nodes, gpus, vcpus_milli, memory_mib, tags)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                name,
                request.kind.as_str(),
                request.state.as_str(),
                request.nodes,
                request.gpus_per_node,
                i64::from(request.vcpus_per_node) * 1_000,
                memory(request.memory_mib_per_node),
                serde_json::to_string(&request.tags)?
            ],
        )?;
        self.add_nodes(name, 0..request.nodes, request.gpus_per_node)?;
        Ok(self.arns().environment(name))
    }

    fn update_environment(
        &self,
        known: ComputeEnvironment,
        update: &ComputeEnvironmentUpdate,
    ) -> Result<String, BatchError> {
        let name = &known.compute_environment_name;
        let nodes = update.nodes.unwrap_or(known.nodes).max(1);
        let gpus = update.gpus_per_node.unwrap_or(known.gpus_per_node);
        self.db.execute(
            "UPDATE compute_environment SET state = ?2, nodes = ?3, gpus = ?4, vcpus_milli = ?5, memory_mib = ?6
             WHERE name = ?1",
            params![
                name,
                update.state.unwrap_or(known.state).as_str(),
                nodes,
                gpus,
                i64::from(update.vcpus_per_node.unwrap_or(known.vcpus_per_node)) * 1_000,
                memory(update.memory_mib_per_node.unwrap_or(known.memory_mib_per_node)),
            ],
        )?;
        if gpus != known.gpus_per_node {
            self.drop_nodes(name)?;
            self.add_nodes(name, 0..nodes, gpus)?;
        } else {
            self.resize(name, nodes, gpus)?;
        }
        self.settle_nodes(name)?;
        Ok(known.compute_environment_arn)
    }

    /// Nodes beyond the number retire, nodes below it come back, missing ones are added.
    fn resize(&self, name: &str, nodes: u32, gpus: u32) -> Result<(), BatchError> {
        self.db.execute("UPDATE node SET retired = (idx >= ?2) WHERE environment = ?1", params![name, nodes])?;
        let there: u32 =
            self.db.query_row("SELECT count(*) FROM node WHERE environment = ?1", params![name], |row| row.get(0))?;
        self.add_nodes(name, there..nodes.max(there), gpus)
    }

    fn drop_nodes(&self, name: &str) -> Result<(), BatchError> {
        let busy: bool = self.db.query_row(
            "SELECT EXISTS (SELECT 1 FROM attempt WHERE state != 'ended' AND environment = ?1)",
            params![name],
            |row| row.get(0),
        )?;
        if busy {
            let message = format!("The GPUs per node of {name} can't be changed while jobs run on it");
            return Err(BatchError::client(message));
        }
        self.db.execute("DELETE FROM node WHERE environment = ?1", params![name])?;
        Ok(())
    }
}

fn memory(mib: u64) -> i64 {
    i64::try_from(mib).unwrap_or(i64::MAX)
}
