//! Faults that were found by seeds, and that seeds meet too seldom: each is told on a stage, with an invocation that is
//! stopped or ended at every await point in turn. With the mend taken out, the test fails at one of them.

use osprey_model::id::{JobId, MessageId};
use osprey_ports::QueueKind::{Events, Internal, InternalDead, Submissions, SubmissionsDead};
use osprey_tests::chaos::{Invocation, Stage};

/// Tells a story with an invocation that went on by 0, 1, 2, … await points, until it ends before. Returns how many.
fn at_every_await_point(tell: impl Fn(usize) -> Option<Result<(), String>>) -> usize {
    let mut points = 0;
    while let Some(verdict) = tell(points) {
        assert_eq!(verdict, Ok(()), "stopped after {points} await points");
        points += 1;
    }
    points
}

/// A stage with an invocation of submit that went on by so many await points; `None` when it ended before.
fn paused(stage: &mut Stage, points: usize) -> Option<Invocation> {
    let invocation = stage.begin(Submissions)?;
    stage.steps(invocation, points).then_some(invocation)
}

/// A stage with a dead letter whose redrive is on the way.
fn with_a_redrive() -> (Stage, String) {
    let mut stage = Stage::default();
    let message = stage.send_job();
    stage.bury(Submissions);
    stage.handle(SubmissionsDead);
    let letter = JobId::of_message(&message).to_string();
    let says = stage.row(&format!("DEAD#{letter}"), "STATE").unwrap_or_default();
    assert!(says.contains(r#""status":"redriven""#), "{says}");
    (stage, letter)
}

/// A redrive that failed too often, or was lost, was dropped, and its dead letter said redriven and nothing else for
/// ever.
#[test]
fn a_lost_redrive_is_made_good() {
    let (mut stage, _) = with_a_redrive();
    assert_eq!(stage.lose(Internal), 1);
    assert_eq!(stage.settle(), Ok(()));
}

/// A redrive that failed too often is in the dead letters of its own queue: its dead letter hears of it at once.
#[test]
fn a_redrive_that_failed_too_often_is_sent_again() {
    let (mut stage, letter) = with_a_redrive();
    stage.bury(Internal);
    stage.handle(InternalDead);
    let says = stage.row(&format!("DEAD#{letter}"), "STATE").unwrap_or_default();
    assert!(says.contains(r#""redrives":2"#), "{says}");
    assert_eq!(stage.settle(), Ok(()));
}

/// An invocation that had stood still recorded a message that was a dead letter by then: it was in two places.
#[test]
fn a_message_recorded_late_closes_its_dead_letter() {
    for send in [Stage::send_invalid, Stage::send_job] as [fn(&mut Stage) -> MessageId; 2] {
        let points = at_every_await_point(|points| {
            let mut stage = Stage::default();
            send(&mut stage);
            let late = paused(&mut stage, points)?;
            stage.bury(Submissions);
            stage.handle(SubmissionsDead);
            stage.finish(late);
            Some(stage.settle())
        });
        assert!(points >= 2, "only {points} await points");
    }
}

/// Whether the message of a dead letter is recorded as a job, and the dead letter is closed all the same.
fn is_in_two_places(stage: &Stage, letter: &str) -> bool {
    let says = stage.row(&format!("DEAD#{letter}"), "STATE").unwrap_or_default();
    is_recorded(stage, letter) && says.contains(r#""status":"discarded""#)
}

fn is_recorded(stage: &Stage, letter: &str) -> bool {
    stage.row(&format!("JOB#{letter}"), "STATE").is_some()
}

/// Nothing is in two places now, nor when everything has come to rest.
fn in_one_place(stage: Stage, letter: &str) -> Result<(), String> {
    if is_in_two_places(&stage, letter) {
        return Err("the message is recorded, and its dead letter discarded".to_owned());
    }
    stage.settle()
}

/// A dead letter was discarded after its redrive had been recorded: it was in two places.
#[test]
fn a_discard_that_comes_too_late_is_refused() {
    let points = at_every_await_point(|points| {
        let (mut stage, letter) = with_a_redrive();
        let redrive = stage.begin(Internal)?;
        if !stage.steps(redrive, points) {
            return None;
        }
        stage.end(redrive);
        stage.send_discard(&letter);
        stage.handle(Submissions);
        Some(in_one_place(stage, &letter))
    });
    assert!(points >= 10, "only {points} await points");
}

/// A dead letter was discarded while its redrive was at work, which then recorded it: it was in two places.
#[test]
fn a_discard_that_comes_too_early_is_made_up_for() {
    for is_ended in [false, true] {
        let points = at_every_await_point(|points| {
            let (mut stage, letter) = with_a_redrive();
            let redrive = stage.begin(Internal)?;
            if !stage.steps(redrive, points) {
                return None;
            }
            stage.send_discard(&letter);
            stage.handle(Submissions);
            if is_ended {
                // Right after it was recorded, and before anybody noted that.
                while !is_recorded(&stage, &letter) && stage.step(redrive) {}
                stage.end(redrive);
                stage.handle(Internal);
            } else {
                stage.finish(redrive);
            }
            Some(in_one_place(stage, &letter))
        });
        assert!(points >= 10, "only {points} await points");
    }
}

/// A list showed the job of a claim, its description lagged behind, and the claim was given up: a second job was made.
#[test]
fn a_claim_is_kept_while_a_listed_job_is_not_described() {
    let mut stage = Stage::default();
    stage.deafen();
    let message = stage.send_job();
    let submit = stage.begin(Submissions).expect("the message is there");
    while stage.batch_jobs() == 0 && stage.step(submit) {}
    stage.end(submit);
    stage.blind(true);
    stage.watch();
    stage.pass(1_800_000);
    let says = stage.row(&format!("JOB#{}", JobId::of_message(&message)), "STATE").unwrap_or_default();
    assert!(says.contains(r#""state":"claimed""#), "{says}");
    stage.blind(false);
    assert_eq!(stage.settle(), Ok(()));
}

/// The row of a second Batch job said stopped before Batch was asked, and the step broke off in between.
#[test]
fn a_second_job_is_stopped_before_it_is_said_to_be() {
    let points = at_every_await_point(|points| {
        let mut stage = Stage::default();
        let message = stage.send_job();
        stage.handle(Submissions);
        let second = stage.second_job();
        let event = stage.begin(Events)?;
        if !stage.steps(event, points) {
            return None;
        }
        stage.end(event);
        let row = stage.row(&format!("JOB#{}", JobId::of_message(&message)), &format!("EXTRA#{second}"));
        let is_said = row.is_some_and(|row| row.contains(r#""stopped":true"#));
        if is_said && stage.stops_of(&second) == 0 {
            return Some(Err("it is said to be stopped, and nobody asked Batch".to_owned()));
        }
        Some(stage.settle())
    });
    assert!(points >= 10, "only {points} await points");
}
