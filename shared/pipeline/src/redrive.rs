//! Dead letters that are sent through again, until it is known where they went.
//!
//! A dead letter says that it was redriven before its message is sent, so for a while it is the only place where that
//! message is. It stays in the index of what is due until somebody notes that the message was recorded: a redrive that
//! was lost is sent again by `watch`, and one that failed too often opens the dead letter again.

use jiff::Timestamp;
use osprey_model::id::JobId;
use osprey_model::message::{self, Message};
use osprey_ports::{
    Expect, GetItem, Notify, QueryItems, QueueKind, ReceivedMessage, SendMessage, StoreError, Write, WriteItems,
};

use crate::dead::{self, DeadKind, DeadLetter, DeadStatus};
use crate::failure::Failure;
use crate::internal::Internal;
use crate::{key, record, repository};

/// Times that a message is sent through again without a person asking.
pub const REDRIVES_MAX: u32 = 2;
/// Delay before a message is sent through again, seconds: what made it fail may pass.
pub const REDRIVE_DELAY_SECONDS: u32 = 60;
/// A redrive of which nothing was heard for so long is sent again, milliseconds.
pub const REDRIVE_REPEAT_MS: i64 = 900_000;

/// An invocation runs for at most 15 minutes on AWS, and so long after a message was given up one may still record it.
/// A dead letter is looked at once more after this time, milliseconds.
pub const LATE_MS: i64 = 1_200_000;

/// What redriving calls.
pub trait Ports: GetItem + QueryItems + WriteItems + SendMessage + Sync {}

impl<P: GetItem + QueryItems + WriteItems + SendMessage + Sync> Ports for P {}

/// Whether a message's job or action is recorded: then nothing is lost.
///
/// # Errors
/// When the store fails.
pub async fn is_recorded<P: GetItem + Sync>(ports: &P, message: &ReceivedMessage) -> Result<bool, Failure> {
    if ports.get_item(&key::action(&message.id)).await?.is_some() {
        return Ok(true);
    }
    if repository::load(ports, JobId::of_message(&message.id)).await?.is_some() {
        return Ok(true);
    }
    let Ok(Message::Submit(request)) = message::parse(&message.body) else { return Ok(false) };
    let Ok(Some(chosen)) = message::chosen_job_id(&request) else { return Ok(false) };
    let recorded = repository::load(ports, chosen).await?.is_some_and(|loaded| loaded.job.message == message.id);
    Ok(recorded || ports.get_item(&key::duplicate(chosen, &message.id)).await?.is_some())
}

/// Notes that a dead letter is sent through again, and sends it.
///
/// # Errors
/// When the store or the queue fails. What was noted before is made good by [`attend`].
pub async fn again<P: Ports>(ports: &P, id: JobId, delay_seconds: u32, now: i64) -> Result<(), Failure> {
    let Some((letter, version)) = dead::load(ports, id).await? else { return Ok(()) };
    // Its message may have been recorded since, and the job be a dead letter of its own under the same id.
    if letter.arrived || !matches!(letter.kind, DeadKind::Message { .. }) {
        return Ok(());
    }
    let next = letter.redriven(now);
    ports.write_items(&[Write::Put { item: next.item(), expect: Expect::Version(version) }]).await?;
    send(ports, id, delay_seconds).await
}

/// Sends the message that makes a dead letter go through again.
///
/// # Errors
/// When the queue fails.
pub async fn send<P: SendMessage + Sync>(ports: &P, id: JobId, delay_seconds: u32) -> Result<(), Failure> {
    let body = repository::json(&Internal::Redrive { dead_letter_id: id });
    let sent = ports.send_message(QueueKind::Internal, &body, delay_seconds).await;
    sent.map(drop).map_err(Failure::call("SendMessage"))
}

/// Notes that the message of a dead letter is recorded elsewhere, whatever was thought of it meanwhile.
///
/// # Errors
/// When the store fails.
pub async fn arrived<P: GetItem + WriteItems + Sync>(ports: &P, id: JobId) -> Result<(), Failure> {
    change(ports, id, |letter| {
        // A job has the id of its message when nobody chose one, and may be a dead letter of its own by now.
        let is_awaited = matches!(letter.kind, DeadKind::Message { .. }) && !letter.arrived;
        is_awaited.then_some(DeadLetter { status: DeadStatus::Redriven, arrived: true, ..letter })
    })
    .await
}

/// Whether the message of a dead letter is recorded elsewhere: an invocation that was thought dead may have done it.
///
/// # Errors
/// When the store fails.
pub async fn is_elsewhere<P: GetItem + QueryItems + Sync>(ports: &P, letter: &DeadLetter) -> Result<bool, Failure> {
    if letter.arrived || !matches!(letter.kind, DeadKind::Message { .. }) {
        return Ok(false);
    }
    match kept(ports, letter).await? {
        Some(message) => is_recorded(ports, &message).await,
        None => Ok(false),
    }
}

/// The message of a dead letter as it was received.
///
/// # Errors
/// When the store fails.
pub async fn kept<P: QueryItems + Sync>(ports: &P, letter: &DeadLetter) -> Result<Option<ReceivedMessage>, Failure> {
    let DeadKind::Message { receive_count, .. } = &letter.kind else { return Ok(None) };
    let record = record::read(ports, key::dead_partition(letter.id)).await?;
    Ok(record.map(|record| ReceivedMessage {
        sender: record.from(),
        id: record.message,
        body: record.body,
        sent_at: Timestamp::from_millisecond(record.sent_at).unwrap_or_default(),
        receive_count: receive_count.saturating_add(1),
    }))
}

/// Opens a dead letter whose redrive came to nothing, or sends it once more within the budget.
///
/// # Errors
/// When the store or the queue fails.
pub async fn failed<P: Ports>(ports: &P, id: JobId, now: i64) -> Result<(), Failure> {
    let Some((letter, _)) = dead::load(ports, id).await? else { return Ok(()) };
    if !letter.is_under_way() {
        return Ok(());
    }
    if is_elsewhere(ports, &letter).await? {
        return arrived(ports, id).await;
    }
    if letter.redrives < REDRIVES_MAX {
        return again(ports, id, REDRIVE_DELAY_SECONDS, now).await;
    }
    open(ports, id, now).await
}

/// Opens a dead letter again whose redrive can't succeed.
///
/// # Errors
/// When the store fails.
pub async fn open<P: GetItem + WriteItems + Sync>(ports: &P, id: JobId, now: i64) -> Result<(), Failure> {
    change(ports, id, |letter| letter.is_under_way().then(|| letter.opened(now))).await
}

/// Does what is due for a dead letter: closes one whose message was recorded after all, tells a person of one that is
/// open, and sends one again that is under way and of which nothing was heard.
///
/// # Errors
/// When the store, the queue or the topic fails; it stays due.
pub async fn attend<P: Ports + Notify>(ports: &P, id: JobId, now: i64) -> Result<(), Failure> {
    let Some((letter, version)) = dead::load(ports, id).await? else { return Ok(()) };
    if is_elsewhere(ports, &letter).await? {
        return arrived(ports, id).await;
    }
    if !letter.is_under_way() {
        return rest(ports, letter, version, now).await;
    }
    if now < letter.redriven_at.saturating_add(REDRIVE_REPEAT_MS) {
        return Ok(());
    }
    let next = DeadLetter { redriven_at: now, ..letter };
    match ports.write_items(&[Write::Put { item: next.item(), expect: Expect::Version(version) }]).await {
        Ok(()) => send(ports, id, 0).await,
        // Somebody else sees to it.
        Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What is due for a dead letter that isn't under way.
async fn rest<P>(ports: &P, letter: DeadLetter, version: u64, now: i64) -> Result<(), Failure>
where
    P: GetItem + WriteItems + Notify + Sync,
{
    dead::tell(ports, letter.id).await?;
    if !letter.may_be_late() || now < letter.died_at.saturating_add(LATE_MS) {
        return Ok(());
    }
    let checked = DeadLetter { checked: true, ..letter };
    match ports.write_items(&[Write::Put { item: checked.item(), expect: Expect::Version(version) }]).await {
        // A change gives it another look.
        Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn change<P, F>(ports: &P, id: JobId, decide: F) -> Result<(), Failure>
where
    P: GetItem + WriteItems + Sync,
    F: Fn(DeadLetter) -> Option<DeadLetter> + Send + Sync,
{
    for _ in 0..repository::TRIES_MAX {
        let Some((letter, version)) = dead::load(ports, id).await? else { return Ok(()) };
        let Some(next) = decide(letter) else { return Ok(()) };
        match ports.write_items(&[Write::Put { item: next.item(), expect: Expect::Version(version) }]).await {
            Ok(()) => return Ok(()),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::Contended(id))
}

impl DeadLetter {
    /// Whether it was sent through again and isn't known to have arrived.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.status == DeadStatus::Redriven && !self.arrived
    }

    /// Whether its message may yet turn out to be recorded elsewhere.
    #[must_use]
    pub fn may_be_late(&self) -> bool {
        matches!(self.kind, DeadKind::Message { .. }) && !self.arrived && !self.checked
    }

    /// It, sent through again now. A job is back in its queue with the write that says so; a message has yet to arrive.
    #[must_use]
    pub fn redriven(self, now: i64) -> Self {
        let arrived = matches!(self.kind, DeadKind::Job { .. });
        let redrives = self.redrives.saturating_add(1);
        Self { status: DeadStatus::Redriven, redrives, redriven_at: now, arrived, checked: false, ..self }
    }

    /// It, open again since now.
    #[must_use]
    pub fn opened(self, now: i64) -> Self {
        Self { status: DeadStatus::Open, told: false, checked: false, died_at: now, ..self }
    }
}
