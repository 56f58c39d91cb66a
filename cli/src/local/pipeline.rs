//! The functions on the local queues: receive, handle, delete what was handled.

use std::time::{Duration, Instant};

use osprey_local::{Delivery, LocalWorld};
use osprey_model::id::MessageId;
use osprey_pipeline::acted::Acted;
use osprey_pipeline::context::Context;
use osprey_pipeline::key;
use osprey_ports::{Clock as _, Index, IndexQuery, QueueKind, ReceivedMessage};

use super::{account, block_on};
use crate::error::CliError;

/// How long a message that was received stays hidden, in virtual seconds. Nobody else receives here, so this is only
/// the time until a message that failed comes again.
const VISIBILITY_SECONDS: u32 = 5;
/// Messages in one receive.
const BATCH: usize = 10;
/// How often `watch` runs, in real time. On AWS it is once a minute; here it costs nothing.
const WATCH_EVERY: Duration = Duration::from_millis(500);
/// How often `watch` runs at most when something is due.
const WATCH_DUE_EVERY: Duration = Duration::from_millis(50);

/// The functions, ready to be driven step by step.
pub struct Pipeline<'a> {
    world: &'a LocalWorld,
    context: Context<'a>,
    watched: Option<Instant>,
    /// Whether the last `watch` got nowhere with what was due; then there is no hurry.
    is_stuck: bool,
}

/// What a step did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// Messages that were handled.
    pub messages: usize,
    /// Whether one came by the submission or the internal queue: a person may have put back a job that had ended.
    pub asked: bool,
    /// Actions that were carried out or refused, each with its message.
    pub acted: Vec<(MessageId, Acted)>,
    /// Whether `watch` had something to do.
    pub watched: bool,
}

impl Stepped {
    /// Whether anything may have changed.
    #[must_use]
    pub fn did_something(&self) -> bool {
        self.messages > 0 || self.watched
    }
}

impl<'a> Pipeline<'a> {
    /// The functions on a world.
    #[must_use]
    pub fn new(world: &'a LocalWorld, context: Context<'a>) -> Self {
        Self { world, context, watched: None, is_stuck: false }
    }

    /// One round: events into their queue, a batch of each queue, and `watch` when it is time.
    ///
    /// # Errors
    /// When the state can't be used.
    pub fn step(&mut self) -> Result<Stepped, CliError> {
        let mut stepped = Stepped::default();
        self.world.pump_events()?;
        for queue in QueueKind::ALL {
            let handled = self.queue(queue)?;
            stepped.messages += handled.len();
            if queue == QueueKind::Submissions {
                stepped.acted = self.acted(&handled)?;
            }
            stepped.asked |= !handled.is_empty() && matches!(queue, QueueKind::Submissions | QueueKind::Internal);
        }
        if self.is_time_to_watch()? {
            self.watched = Some(Instant::now());
            let report = block_on(osprey_watch::handle(&self.context, self.world));
            self.is_stuck = report.failed > 0 && report.failed >= report.due;
            stepped.watched = report.due > report.failed;
        }
        Ok(stepped)
    }

    /// Of messages that were handled, the actions with what became of them.
    fn acted(&self, messages: &[ReceivedMessage]) -> Result<Vec<(MessageId, Acted)>, CliError> {
        let mut acted = Vec::new();
        for message in messages.iter().filter(|message| message.body.contains("\"action\"")) {
            acted.extend(account::acted(self.world, &message.id)?.map(|acted| (message.id.clone(), acted)));
        }
        Ok(acted)
    }

    /// Handles a batch of messages and answers them.
    fn queue(&self, queue: QueueKind) -> Result<Vec<ReceivedMessage>, CliError> {
        let deliveries = self.world.queues().receive(queue, BATCH, VISIBILITY_SECONDS)?;
        if deliveries.is_empty() {
            return Ok(Vec::new());
        }
        let messages: Vec<ReceivedMessage> = deliveries.iter().map(|delivery| delivery.message.clone()).collect();
        let failed = self.handle(queue, &messages);
        self.delete(queue, &deliveries, &failed)?;
        Ok(messages)
    }

    fn handle(&self, queue: QueueKind, messages: &[ReceivedMessage]) -> Vec<MessageId> {
        let (context, world) = (&self.context, self.world);
        match queue {
            QueueKind::Submissions | QueueKind::Internal => {
                block_on(osprey_submit::handle(context, world, queue, messages))
            }
            QueueKind::Events => block_on(osprey_requeue::handle(context, world, messages)),
            QueueKind::Wake => block_on(osprey_schedule::handle(context, world, messages)),
            QueueKind::SubmissionsDead | QueueKind::InternalDead | QueueKind::EventsDead | QueueKind::WakeDead => {
                block_on(osprey_dead_letter::handle(context, world, queue, messages))
            }
        }
    }

    fn delete(&self, queue: QueueKind, deliveries: &[Delivery], failed: &[MessageId]) -> Result<(), CliError> {
        for delivery in deliveries.iter().filter(|delivery| !failed.contains(&delivery.message.id)) {
            self.world.queues().delete(queue, &delivery.receipt)?;
        }
        Ok(())
    }

    fn is_time_to_watch(&self) -> Result<bool, CliError> {
        let since = self.watched.map_or(Duration::MAX, |watched| watched.elapsed());
        if since >= WATCH_EVERY {
            return Ok(true);
        }
        Ok(since >= WATCH_DUE_EVERY && !self.is_stuck && self.is_something_due()?)
    }

    fn is_something_due(&self) -> Result<bool, CliError> {
        let now = self.world.now().as_millisecond();
        let page = self.world.store().query_index(&IndexQuery {
            index: Index::Due,
            partition: key::DUE.to_owned(),
            from: None,
            to: Some(format!("{}~", key::sortable(now))),
            newest_first: false,
            after: None,
            limit: 1,
        })?;
        Ok(!page.entries.is_empty())
    }

    /// Whether nothing is on its way: no message in a queue, no event in the local Batch.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn is_drained(&self) -> Result<bool, CliError> {
        for queue in QueueKind::ALL {
            if self.world.queues().next_visible_at(queue)?.is_some() {
                return Ok(false);
            }
        }
        let next = self.world.batch().next_event_due_ms().map_err(|error| CliError::failed(error.to_string()))?;
        Ok(next.is_none())
    }
}
