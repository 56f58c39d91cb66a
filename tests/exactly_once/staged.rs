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

/// A dead letter was discarded after its redrive had been recorded, or while it was: it was in two places.
#[test]
fn a_discard_that_comes_too_late_is_refused() {
    for goes_on in [true, false] {
        let points = at_every_await_point(|points| {
            let (mut stage, letter) = with_a_redrive();
            let redrive = stage.begin(Internal)?;
            if !stage.steps(redrive, points) {
                return None;
            }
            stage.send_discard(&letter);
            stage.handle(Submissions);
            if goes_on {
                stage.finish(redrive);
            } else {
                stage.end(redrive);
            }
            Some(stage.settle())
        });
        assert!(points >= 10, "only {points} await points");
    }
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
