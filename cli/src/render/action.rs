//! Actions: what was asked for, of what, by whom, and what became of it.

use osprey_model::message::{Action, Subject};
use osprey_pipeline::acted::Acted;
use serde_json::{Value, json};

use super::table::Columns;
use super::time::rfc3339;

/// What an action is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// `HoldJob` and the like.
    pub name: String,
    /// `job`, `dead letter`, `pool` or `policy`.
    pub what: &'static str,
    /// Its id.
    pub id: String,
    /// Why.
    pub reason: Option<String>,
}

/// The parts of an action.
#[must_use]
pub fn asked(action: &Action) -> Asked {
    let body = serde_json::to_value(action).unwrap_or_default();
    let text = |member: &str| body.get(member).and_then(Value::as_str).map(str::to_owned);
    let (what, id) = match action.subject() {
        Subject::Job(id) => ("job", id.to_string()),
        Subject::DeadLetter(id) => ("dead letter", id.to_owned()),
        Subject::Pool(pool) => ("pool", pool.to_string()),
        Subject::Policy(_) => ("policy", String::new()),
    };
    Asked { name: text("action").unwrap_or_default(), what, id, reason: text("reason") }
}

/// What became of it: `done: held`, or `refused: …`.
#[must_use]
pub fn outcome(acted: &Acted) -> String {
    match (&acted.refusal, &acted.done) {
        (Some(refusal), _) => format!("refused: {refusal}"),
        (None, Some(done)) => format!("done: {done}"),
        (None, None) => "done".to_owned(),
    }
}

/// One action in one line: `HoldJob of job ID  done: held`.
#[must_use]
pub fn line(acted: &Acted) -> String {
    let Asked { name, what, id, .. } = asked(&acted.action);
    format!("{name} of {what} {id}  {}", outcome(acted))
}

/// Actions on one job as a table.
#[must_use]
pub fn table(actions: &[Acted]) -> String {
    let mut columns = Columns::new(&["ACTION", "AT", "BY", "REASON", "OUTCOME"]);
    for acted in actions {
        let Asked { name, reason, .. } = asked(&acted.action);
        let reason = reason.unwrap_or_else(|| "-".to_owned());
        columns.row([name, rfc3339(acted.at), acted.sender.clone(), reason, outcome(acted)]);
    }
    columns.render()
}

/// One action as JSON.
#[must_use]
pub fn document(acted: &Acted) -> Value {
    let Acted { action, sender, at, done, refusal } = acted;
    let Asked { name, reason, .. } = asked(action);
    json!({
        "action": name,
        "sender": sender,
        "at": rfc3339(*at),
        "reason": reason,
        "done": done,
        "refusal": refusal,
    })
}

#[cfg(test)]
mod tests {
    use osprey_model::reason::{ReasonCode, Refusal};

    use super::*;

    fn acted(done: Option<&str>, refusal: Option<Refusal>) -> Acted {
        let action = serde_json::from_value(json!({
            "action": "HoldJob", "jobId": "00000000-0000-4000-8000-000000000001", "reason": "new data",
        }));
        Acted { action: action.unwrap(), sender: "1000:ada".to_owned(), at: 0, done: done.map(str::to_owned), refusal }
    }

    #[test]
    fn an_action_says_what_became_of_it() {
        let id = "00000000-0000-4000-8000-000000000001";
        assert_eq!(line(&acted(Some("held"), None)), format!("HoldJob of job {id}  done: held"));
        let refusal = Refusal::new(ReasonCode::WrongState, "no".to_owned());
        assert_eq!(line(&acted(None, Some(refusal))), format!("HoldJob of job {id}  refused: no (WrongState)"));
    }

    #[test]
    fn a_table_of_actions_names_sender_time_and_reason() {
        let want = "\
ACTION   AT                        BY        REASON    OUTCOME
HoldJob  1970-01-01T00:00:00.000Z  1000:ada  new data  done: held";
        assert_eq!(table(&[acted(Some("held"), None)]), want);
    }
}
