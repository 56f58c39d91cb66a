//! What would become of a request that were sent now, for people and as JSON.

use osprey_model::message::words::{counted, shown};
use serde::Serialize;

use super::why::{self, Eta, Reason};

/// What would become of it. The members are an interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pending {
    /// What the next cycle of its pool would do.
    pub verdict: Verdict,
    /// Where it would start, as far as that can be foreseen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Who would go for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evicts: Vec<Evicted>,
    /// Why it would wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Jobs of the line that would come before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<usize>,
    /// When it would start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_seconds: Option<Eta>,
    /// Jobs that it would wait for before it stands in line.
    #[serde(skip)]
    pub waits_for: usize,
    /// The verdict as a sentence.
    pub sentence: String,
}

/// What the next cycle would do with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Start it.
    Starts,
    /// Start it in the place of others.
    Preempts,
    /// Let it wait.
    Waits,
    /// It doesn't stand in line before other jobs have succeeded.
    WaitsForJobs,
    /// Its pool holds no jobs: Batch has it at once.
    Submitted,
}

/// A job that would go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evicted {
    /// Its id.
    pub job: String,
    /// Its name.
    pub name: String,
    /// Work that no checkpoint holds, in GPU-seconds.
    pub lost_gpu_seconds: u64,
}

impl Pending {
    /// A verdict of which nothing more is known.
    #[must_use]
    pub fn of(verdict: Verdict) -> Self {
        Self {
            verdict,
            nodes: Vec::new(),
            evicts: Vec::new(),
            reason: None,
            ahead: None,
            eta_seconds: None,
            waits_for: 0,
            sentence: String::new(),
        }
    }

    /// The same with its sentence.
    #[must_use]
    pub fn told(self) -> Self {
        let sentence = self.sentence();
        Self { sentence, ..self }
    }

    fn sentence(&self) -> String {
        let on = if self.nodes.is_empty() { String::new() } else { format!(" on {}", self.nodes.join(", ")) };
        match self.verdict {
            Verdict::Starts => format!("starts in the next cycle{on}"),
            Verdict::Preempts => format!("starts in the next cycle{on}, in the place of {}", self.victims()),
            Verdict::Waits => self.waits(),
            Verdict::WaitsForJobs => {
                format!("waits for {} to succeed before it stands in line", counted(size(self.waits_for), "job"))
            }
            Verdict::Submitted => "is handed to Batch at once: its pool holds no jobs".to_owned(),
        }
    }

    fn victims(&self) -> String {
        let one = |evicted: &Evicted| {
            let name = if evicted.name.is_empty() { evicted.job.clone() } else { shown(&evicted.name) };
            format!("{name} (which loses {} GPU-seconds of work)", evicted.lost_gpu_seconds)
        };
        self.evicts.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn waits(&self) -> String {
        let behind = match self.ahead {
            Some(0) => " at the front of the line".to_owned(),
            Some(count) => format!(" behind {}", counted(size(count), "job")),
            None => String::new(),
        };
        let why =
            self.reason.as_ref().map_or(String::new(), |reason| format!(": {} ({})", reason.sentence, reason.code));
        let when = self.eta_seconds.map_or(String::new(), |eta| format!("; it starts {}", why::expected(eta)));
        format!("waits{behind}{why}{when}")
    }
}

fn size(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_is_one_sentence() {
        let said = |pending: Pending| pending.told().sentence;
        let nodes = vec!["i-1".to_owned()];
        let starts = Pending { nodes: nodes.clone(), ..Pending::of(Verdict::Starts) };
        assert_eq!(said(starts), "starts in the next cycle on i-1");
        let evicted = Evicted { job: "7".to_owned(), name: "train".to_owned(), lost_gpu_seconds: 90 };
        let preempts = Pending { nodes, evicts: vec![evicted], ..Pending::of(Verdict::Preempts) };
        let want = "starts in the next cycle on i-1, in the place of train (which loses 90 GPU-seconds of work)";
        assert_eq!(said(preempts), want);
        let reason = Reason { code: "NoRoom".to_owned(), sentence: "it needs 8 GPUs, 0 are free".to_owned() };
        let eta_seconds = Some(Eta { p50: None, p80: None });
        let waits = Pending { reason: Some(reason), ahead: Some(1), eta_seconds, ..Pending::of(Verdict::Waits) };
        let want =
            "waits behind 1 job: it needs 8 GPUs, 0 are free (NoRoom); it starts at no time that can be foreseen";
        assert_eq!(said(waits), want);
        let after = Pending { waits_for: 2, ..Pending::of(Verdict::WaitsForJobs) };
        assert_eq!(said(after), "waits for 2 jobs to succeed before it stands in line");
    }
}
