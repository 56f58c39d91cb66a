//! The ports of one invocation. Each call is an await point before and after its effect: there the invocation may be
//! delayed, overtaken, stalled or ended, and the call may fail before the effect or after it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use jiff::Timestamp;
use osprey_model::definition::JobDefinition;
use osprey_model::event::{BatchStatus, JobDetail};
use osprey_model::id::{BatchJobId, MessageId, QueueName};
use osprey_model::pool::{CapacityType, Pool};
use osprey_ports::{
    CallError, CancelJob, Capacity, Clock, DescribeJobDefinition, DescribeJobs, GetItem, IndexPage, IndexQuery, Item,
    JobSummary, Key, ListChildren, ListJobs, NodeCapacity, Notice, Notify, ObserveCapacity, OutgoingEvent, Page,
    PutEvents, QueryIndex, QueryItems, QueueKind, SendMessage, SortQuery, StoreError, SubmitCall, SubmitError,
    SubmitJob, SubmitRate, TerminateJob, Write, WriteItems,
};

use super::batch::{BatchJob, Turn};
use super::breakage::Breakage;
use super::check::capacity;
use super::detail::detail;
use super::scenario::PHASE_MS;
use super::store::as_read;
use super::wiring;
use super::world::{Happening, Told, World};

/// A world that several tasks share. There is one thread; the lock is never waited for.
pub type Shared = Arc<Mutex<World>>;

/// Enters the world.
pub fn enter(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ports of one task.
pub struct Ports {
    /// The world.
    pub world: Shared,
    /// The task.
    pub task: usize,
}

/// An invocation that is older than this, which is Lambda's limit, is ended at its next await point.
const INVOCATION_MS_MAX: i64 = 900_000;

/// An invocation stands still for at most so long, and goes on wherever it is.
const STALL_MS_MAX: i64 = 900_000;

/// An invocation works, and changes what is stored, for at most so long after its beginning: it may stand still once more
/// shortly before its end. A machine that sleeps does that, so the rules hold for it too.
pub const LIFE_MS_MAX: i64 = INVOCATION_MS_MAX + STALL_MS_MAX;

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Happens,
    Throttled,
    FailsBefore,
    FailsAfter,
}

/// A call that failed in a way that every service has.
enum Fault {
    Throttled,
    Unknown(&'static str),
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Throttled => Self::Throttled,
            Fault::Unknown(why) => Self::Unknown(why.to_owned()),
        }
    }
}

impl From<Fault> for CallError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Throttled => Self::Throttled,
            Fault::Unknown(why) => Self::Unknown(why.to_owned()),
        }
    }
}

/// A wait of a task for a time. A task may wait for several calls at once, so it is polled at other times too. On a stage
/// whoever tells the story lets it go on.
struct Pause<'w> {
    world: &'w Shared,
    until: i64,
    begun: bool,
}

impl Future for Pause<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let begun = std::mem::replace(&mut self.begun, true);
        let world = enter(self.world);
        if world.now >= self.until || (begun && world.is_staged) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl World {
    /// Draws what becomes of a call.
    fn fate(&mut self) -> Fate {
        let faults = &self.faults;
        let random = &mut self.streams.calls;
        if random.chance(faults.throttled) {
            Fate::Throttled
        } else if random.chance(faults.fails_before) {
            Fate::FailsBefore
        } else if random.chance(faults.fails_after) {
            Fate::FailsAfter
        } else {
            Fate::Happens
        }
    }

    /// Draws until when a task waits at an await point, and plans that it goes on then.
    fn wait(&mut self, task: usize) -> i64 {
        let faults = &self.faults;
        let random = &mut self.streams.calls;
        let begun = self.begun.get(task).copied().unwrap_or(self.now);
        if random.chance(faults.crash) || self.now - begun > INVOCATION_MS_MAX {
            self.crashed = true;
            return i64::MAX;
        }
        let ms = if random.chance(faults.stall) {
            random.between(60_000, STALL_MS_MAX)
        } else if random.chance(faults.delay) {
            random.between(1_000, 40_000)
        } else if random.chance(faults.at_once) {
            return self.now;
        } else {
            random.between(1, faults.latency_ms_max)
        };
        if ms >= 1_000 {
            self.tell(|| format!("  task {task} stands still for {} s", ms / 1000));
        }
        let at = self.now + ms;
        self.later(at, Happening::Resume(task));
        at
    }
}

impl Ports {
    async fn wait(&self) {
        let until = enter(&self.world).wait(self.task);
        Pause { world: &self.world, until, begun: false }.await;
    }

    /// Makes a call.
    async fn call<T, F>(&self, what: &'static str, effect: F) -> Result<T, Fault>
    where
        F: FnOnce(&mut World) -> T + Send,
        T: Send,
    {
        self.wait().await;
        let fate = enter(&self.world).fate();
        if fate == Fate::Throttled || fate == Fate::FailsBefore {
            let throttled = fate == Fate::Throttled;
            enter(&self.world).tell(|| format!("  task {}: {what} fails, and nothing happened", self.task));
            return Err(if throttled { Fault::Throttled } else { Fault::Unknown("no answer came") });
        }
        let result = effect(&mut enter(&self.world));
        self.wait().await;
        if fate == Fate::FailsAfter {
            enter(&self.world).tell(|| format!("  task {}: {what} happened, and its answer is lost", self.task));
            return Err(Fault::Unknown("the answer was lost"));
        }
        Ok(result)
    }

    fn is_broken(&self, breakage: Breakage) -> bool {
        enter(&self.world).is_broken(breakage)
    }
}

impl Clock for Ports {
    fn now(&self) -> Timestamp {
        let mut world = enter(&self.world);
        let most = world.faults.skew_ms_max;
        let jump = world.faults.jump;
        if most > 0 && world.streams.calls.chance(jump) {
            let skew = world.streams.calls.between(-most, most);
            if let Some(own) = world.skews.get_mut(self.task) {
                *own = skew;
            }
        }
        let skew = world.skews.get(self.task).copied().unwrap_or(0);
        Timestamp::from_millisecond(world.now + skew).unwrap_or_default()
    }
}

impl GetItem for Ports {
    async fn get_item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        if key.sort == "DEPENDS" && self.is_broken(Breakage::ReleaseDependentsEarly) {
            return Ok(None);
        }
        let found = self.call("GetItem", |world| world.store.get(key).map(as_read)).await?;
        if self.is_broken(Breakage::StaleReads) {
            self.wait().await;
        }
        Ok(found)
    }
}

impl QueryItems for Ports {
    async fn query_items(&self, query: &SortQuery) -> Result<Page, StoreError> {
        let ask = |world: &mut World| {
            let is_holding = query.partition.starts_with("POOL#");
            if is_holding && world.is_broken(Breakage::ForgetHoldings) {
                return Page::default();
            }
            if query.partition.starts_with("EVICTED#") && world.is_broken(Breakage::ForgetBudgets) {
                return Page::default();
            }
            let mut page = world.store.query(query);
            if query.partition.starts_with("USAGE#") && world.is_broken(Breakage::ForgetHours) {
                page.items.retain(|item| !item.key.sort.starts_with("DAY#"));
            }
            if is_holding && world.is_broken(Breakage::TakeAllForBorrowed) {
                let lend = |body: &str| body.replace("\"counted\":true}", "\"counted\":true,\"borrowed\":true}");
                page.items.iter_mut().for_each(|item| item.body = lend(&item.body));
            }
            if is_holding && world.is_broken(Breakage::ForgetPlannedEvictions) {
                page.items.retain(|item| !item.key.sort.starts_with("EVICT#"));
            }
            if is_holding && world.is_broken(Breakage::ForgetCaps) {
                page.items.iter_mut().for_each(|item| item.body = item.body.replace("\"evictions\":", "\"was\":"));
            }
            page
        };
        Ok(self.call("Query", ask).await?)
    }
}

impl QueryIndex for Ports {
    async fn query_index_lagging(&self, query: &IndexQuery) -> Result<IndexPage, StoreError> {
        Ok(self.call("Query of an index", |world| world.store.query_index(query, world.now)).await?)
    }
}

impl WriteItems for Ports {
    async fn write_items(&self, writes: &[Write]) -> Result<(), StoreError> {
        match self.call("a write", |world| world.write(writes)).await {
            Err(Fault::Throttled) if self.is_broken(Breakage::BelieveThrottledWrites) => Ok(()),
            Err(fault) => Err(fault.into()),
            Ok(result) => result,
        }
    }
}

impl SendMessage for Ports {
    async fn send_message(&self, queue: QueueKind, body: &str, delay_seconds: u32) -> Result<MessageId, CallError> {
        let delay_ms = i64::from(delay_seconds) * 1000;
        let send = |world: &mut World| {
            if world.is_broken(Breakage::SendNothing) {
                return MessageId::new("none");
            }
            world.put(queue, body.into(), "osprey", delay_ms)
        };
        Ok(self.call("SendMessage", send).await?)
    }
}

impl PutEvents for Ports {
    async fn put_events(&self, events: &[OutgoingEvent]) -> Result<(), CallError> {
        let put = |world: &mut World| {
            if world.is_broken(Breakage::TellNoOthers) {
                return;
            }
            for event in events {
                world.hear(&event.detail);
            }
        };
        Ok(self.call("PutEvents", put).await?)
    }
}

impl Notify for Ports {
    async fn notify(&self, notice: &Notice) -> Result<(), CallError> {
        let publish = |world: &mut World| {
            world.tell(|| format!("  a person is told: {}", notice.subject));
            if !world.is_broken(Breakage::TellNobody) {
                world.told.push(Told { key: notice.key.clone() });
            }
        };
        Ok(self.call("Publish", publish).await?)
    }
}

impl DescribeJobDefinition for Ports {
    async fn describe_job_definition(&self, name: &str) -> Result<Option<JobDefinition>, CallError> {
        let name = name.split(':').next().unwrap_or_default();
        Ok(self.call("DescribeJobDefinitions", |_| wiring::DEFINITIONS.get(name).cloned()).await?)
    }
}

impl DescribeJobs for Ports {
    async fn describe_jobs(&self, ids: &[BatchJobId]) -> Result<Vec<JobDetail>, CallError> {
        let describe = |world: &mut World| {
            if world.is_broken(Breakage::BlindDescriptions) {
                return Vec::new();
            }
            let lag = world.streams.answers.between(0, world.faults.describe_lag_ms_max);
            let at = world.now - lag;
            let found = ids.iter().filter_map(|id| world.batch.find(id.as_str()));
            found.filter_map(|(job, part)| Some(detail(&*world.batch.jobs.get(job)?.as_of(at)?, part))).collect()
        };
        Ok(self.call("DescribeJobs", describe).await?)
    }
}

impl ListJobs for Ports {
    async fn list_jobs(
        &self,
        queue: &QueueName,
        name: &str,
        created_from: Timestamp,
    ) -> Result<Vec<JobSummary>, CallError> {
        let list = |world: &mut World| {
            if world.is_broken(Breakage::BlindLists) {
                return Vec::new();
            }
            let now = world.now;
            let found = world.batch.list(queue.as_str(), name, created_from.as_millisecond(), now);
            found.into_iter().filter_map(|at| world.batch.jobs.get(at)).map(summary).collect()
        };
        Ok(self.call("ListJobs", list).await?)
    }
}

fn summary(job: &super::batch::BatchJob) -> JobSummary {
    JobSummary {
        id: BatchJobId::new(job.id.as_str()),
        name: job.name.clone(),
        created_at: Timestamp::from_millisecond(job.created_at).unwrap_or_default(),
    }
}

impl ListChildren for Ports {
    async fn list_failed_children(&self, parent: &BatchJobId, limit: usize) -> Result<Vec<BatchJobId>, CallError> {
        let list = |world: &mut World| {
            let found = world.batch.find(parent.as_str()).and_then(|(at, _)| world.batch.jobs.get(at));
            let failed = found.into_iter().flat_map(|job| job.failed_children_listed(world.now));
            failed.take(limit).map(|index| BatchJobId::new(format!("{parent}:{index}"))).collect()
        };
        Ok(self.call("ListJobs of an array", list).await?)
    }
}

impl ObserveCapacity for Ports {
    async fn observe_capacity(&self, pool: &Pool) -> Result<Capacity, CallError> {
        Ok(self.call("the observation of a pool", |world| world.capacity(pool)).await?)
    }
}

impl World {
    /// The nodes of a pool, with what others' work and jobs that are up take of them.
    fn capacity(&self, pool: &Pool) -> Capacity {
        let nodes = usize::try_from(pool.nodes_max.unwrap_or(0)).unwrap_or(0);
        // Who doesn't look sees a pool in which there is always room.
        let nodes = if self.is_broken(Breakage::PlanWithoutLooking) { nodes * 8 } else { nodes };
        let mut used = vec![0; nodes];
        if let Some(first) = used.first_mut() {
            *first = self.foreign_gpus_at(self.now);
        }
        let is_here = |job: &&BatchJob| !job.is_over() && job.queue.starts_with(&format!("osprey-{}-", pool.name));
        for job in self.batch.jobs.iter().filter(is_here) {
            let each = capacity::gpus_of_a_child(self, job);
            let units =
                if job.children.is_empty() { std::slice::from_ref(&job.whole) } else { job.children.as_slice() };
            let up = units.iter().filter(|unit| matches!(unit.status, BatchStatus::Starting | BatchStatus::Running));
            for number in up.filter_map(|unit| unit.node) {
                if let Some(used) = used.get_mut(number) {
                    *used += each;
                }
            }
        }
        if self.now < self.barren_until && pool.capacity == CapacityType::OnDemand {
            return Capacity { nodes: Vec::new(), obtainable: u32::try_from(nodes).unwrap_or(0) };
        }
        let node = |(number, used): (usize, i64)| NodeCapacity {
            id: format!("{}-{number}", pool.name),
            gpus: pool.gpus_per_node,
            gpus_used: u32::try_from(used).unwrap_or(0),
            ..NodeCapacity::default()
        };
        Capacity { nodes: used.into_iter().enumerate().map(node).collect(), obtainable: 0 }
    }

    /// Puts what starts on the fullest node that has room for it.
    pub fn land(&mut self, at: usize, part: Option<usize>) {
        let Some(job) = self.batch.jobs.get(at) else { return };
        let unit = job.unit(part);
        if unit.status != BatchStatus::Starting || unit.node.is_some() {
            return;
        }
        let node = self.room(job).flatten();
        if let Some(job) = self.batch.jobs.get_mut(at) {
            job.unit_mut(part).node = node;
        }
    }

    /// Whether a step would start a job, or a child, for which no node of a pool that holds its jobs has room: it stays
    /// runnable until one has.
    pub fn has_no_room(&self, turn: Turn) -> bool {
        let Some(job) = self.batch.jobs.get(turn.job).filter(|_| self.wired.is_held) else { return false };
        job.unit(turn.part).status == BatchStatus::Runnable && self.room(job) == Some(None)
    }

    /// The fullest node that has room for a job or one of its children, if one has; `None` where there is no such pool.
    fn room(&self, job: &BatchJob) -> Option<Option<usize>> {
        let each = capacity::gpus_of_a_child(self, job);
        let pool = self.wired.pools.iter().find(|pool| job.queue.starts_with(&format!("osprey-{}-", pool.name)))?;
        let nodes = self.capacity(pool).nodes.into_iter().enumerate();
        let used = nodes.map(|(number, node)| (number, i64::from(node.gpus_used)));
        let fits = used.filter(|(_, used)| used + each <= i64::from(pool.gpus_per_node));
        Some(fits.max_by_key(|(number, used)| (*used, std::cmp::Reverse(*number))).map(|(number, _)| number))
    }

    /// GPUs of each pool that others' work holds at a time: none once faults have stopped.
    pub fn foreign_gpus_at(&self, at: i64) -> i64 {
        if at < self.start + PHASE_MS { i64::from(self.wired.foreign_gpus) } else { 0 }
    }
}

impl CancelJob for Ports {
    async fn cancel_job(&self, _: &BatchJobId, _: &str) -> Result<(), CallError> {
        Err(CallError::Refused("the harness has no CancelJob, since no handler calls it".to_owned()))
    }
}

impl TerminateJob for Ports {
    async fn terminate_job(&self, id: &BatchJobId, reason: &str) -> Result<(), CallError> {
        self.call("TerminateJob", |world| world.terminate(id.as_str(), reason)).await?
    }
}

impl SubmitRate for Ports {}

impl SubmitJob for Ports {
    async fn submit_job(&self, call: &SubmitCall) -> Result<BatchJobId, SubmitError> {
        self.wait().await;
        // From here to the signature nothing can come between: the adapter reads the clock right before it signs.
        let now = self.now();
        if now > call.not_after && !self.is_broken(Breakage::IgnoreTheLease) {
            enter(&self.world).tell(|| format!("  task {}: the submission comes too late to be sent", self.task));
            return Err(SubmitError::NotSent("it is too late".to_owned()));
        }
        let mut answer = enter(&self.world).submit(&call.request);
        if self.is_broken(Breakage::RetrySubmitBlindly) && matches!(answer, Err(SubmitError::Unknown(_))) {
            answer = enter(&self.world).submit(&call.request);
        }
        self.wait().await;
        match answer {
            Err(SubmitError::Unknown(_)) if self.is_broken(Breakage::TakeUnknownForRefused) => {
                Err(SubmitError::Throttled)
            }
            answer => answer,
        }
    }
}
