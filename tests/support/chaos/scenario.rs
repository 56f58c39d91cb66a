//! What is sent in a run, with the truth of each message: what it is, what it depends on, what its job will do.

use super::random::Random;
use super::script::Script;
use super::senders;
use super::wiring;

/// What a message is, in truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// A job. The number is that of its script; messages that may share one job share the group.
    Job {
        /// Its script.
        script: usize,
        /// The id that was chosen, if one was.
        chosen: Option<String>,
        /// Ids in `dependsOn`.
        parents: Vec<String>,
        /// The id in `parent-job-id`.
        lineage: Option<String>,
        /// Tells the request and its sender from others with the same id.
        variant: u32,
        /// Retries after failures that its own strategy allows.
        retries: Option<u32>,
        /// Its team.
        team: &'static str,
        /// GPUs that it holds.
        gpus: i64,
        /// How often it saves its work, in milliseconds of its run.
        saves_ms: Option<i64>,
        /// Whether it belongs to the tier that can be taken away.
        urgent: bool,
        /// Whether its sender may not send it.
        forbidden: bool,
    },
    /// Not a JSON object.
    Malformed,
    /// An object that is no valid request.
    Invalid,
    /// Something that a person asks for.
    Action,
}

/// A message of the submission queue.
#[derive(Clone, Debug)]
pub struct Draft {
    /// When it is sent, from the start of the run.
    pub at_ms: i64,
    /// The body.
    pub body: String,
    /// Who sends it.
    pub sender: &'static str,
    /// What it is.
    pub truth: Truth,
}

/// Everything that is sent by plan.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// The messages, in no order.
    pub drafts: Vec<Draft>,
    /// The scripts that they name.
    pub scripts: Vec<Script>,
    /// Whether the policies tell senders apart.
    pub is_guarded: bool,
}

/// How long messages are sent and faults happen.
pub const PHASE_MS: i64 = 3_600_000;
/// Senders of jobs, as the queue authenticates them.
const SENDERS: [&str; 2] = [senders::SEARCH, senders::VISION];
const TEAMS: [&str; 2] = ["search", "vision"];

/// A job about to be written down.
struct Job {
    chosen: Option<String>,
    parents: Vec<String>,
    lineage: Option<String>,
    script: usize,
    team: usize,
    gpus: i64,
    children: i64,
    preemptible: bool,
    urgent: bool,
    retries: Option<u32>,
    name: String,
    timeout: bool,
}

impl Scenario {
    /// The messages of a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::fork(seed, "scenario");
        let mut scenario = Self { is_guarded: senders::are_told_apart(seed), ..Self::default() };
        let count = random.between(25, 60);
        let ids: Vec<String> = (0..count).map(|_| uuid(&mut random)).collect();
        let is_packed = wiring::is_packed(seed);
        let shape = Shape {
            is_packed,
            chosen: *random.pick(&[200_000, 600_000, 1_000_000]).unwrap_or(&600_000),
            dependent: *random.pick(&[0, 100_000, 400_000]).unwrap_or(&0),
            again: *random.pick(&[0, 50_000, 200_000]).unwrap_or(&0),
            odd: *random.pick(&[0, 30_000, 100_000]).unwrap_or(&0),
            circles: *random.pick(&[0, 0, 100_000, 300_000]).unwrap_or(&0),
            until: *random.pick(&[60_000, 1_800_000, PHASE_MS - 600_000]).unwrap_or(&60_000),
            seed,
            lineage: *Random::fork(seed, "lineage").pick(&[0, 0, 300_000]).unwrap_or(&0),
        };
        let until = if is_packed { PHASE_MS - 900_000 } else { shape.until };
        let (odd, circles) = if is_packed { (0, 0) } else { (shape.odd, shape.circles) };
        let shape = Shape { until, odd, circles, ..shape };
        for at in 0..ids.len() {
            if random.chance(shape.circles) {
                scenario.circle(&mut random, &shape);
            } else {
                scenario.job(&mut random, &ids, at, &shape);
            }
        }
        if wiring::evicts(seed) && random.chance(600_000) || is_packed {
            // Runs so long that the pools are full, or nobody has to go for anybody.
            scenario.scripts.iter_mut().for_each(Script::lengthen);
        }
        if scenario.is_guarded {
            scenario.drafts.extend(senders::hostile(seed, &ids, &mut scenario.scripts));
            scenario.drafts.iter_mut().for_each(bound);
        }
        scenario
    }

    fn job(&mut self, random: &mut Random, ids: &[String], at: usize, shape: &Shape) {
        let at_ms = random.between(0, shape.until);
        if random.chance(shape.odd) {
            self.odd(random, at_ms);
            return;
        }
        let job = Job::draw(random, ids, at, shape, self.scripts.len());
        self.scripts.push(Script::draw(random));
        let sender = if shape.is_packed { job.team } else { random.index(SENDERS.len()) };
        let draft = job.draft(at_ms, sender, 0);
        if job.chosen.is_some() && random.chance(shape.again) {
            self.again(random, &job, at_ms, sender);
        }
        self.drafts.push(draft);
    }

    /// Two jobs that wait for each other, sent at nearly the same time.
    fn circle(&mut self, random: &mut Random, shape: &Shape) {
        let at_ms = random.between(0, shape.until);
        let apart = random.pick(&[0, 20, 500]).copied().unwrap_or(0);
        let ids = [uuid(random), uuid(random)];
        for (own, other) in [(0, 1), (1, 0)] {
            let mut job =
                Job::draw(random, &ids, own, &Shape { chosen: 1_000_000, dependent: 0, ..*shape }, self.scripts.len());
            job.parents.extend(ids.get(other).cloned());
            self.scripts.push(Script::draw(random));
            self.drafts.push(job.draft(at_ms + random.between(0, apart), 0, 0));
        }
    }

    /// The same id once more: the same request, another one, or another sender.
    fn again(&mut self, random: &mut Random, job: &Job, at_ms: i64, sender: usize) {
        let near = at_ms + random.pick(&[0, 1_000, 600_000]).copied().unwrap_or(0);
        let draft = match random.below(4) {
            0 => job.draft(near, 1 - sender, 1),
            1 => Job { name: format!("{}-other", job.name), ..job.clone_parts() }.draft(near, sender, 2),
            _ => job.again(near, sender),
        };
        self.drafts.push(draft);
    }

    fn odd(&mut self, random: &mut Random, at_ms: i64) {
        let malformed = ["", "{", "[1]", "submit my job please", "null", "\"text\""];
        let invalid = [
            r#"{"jobName":"x","jobDefinition":"train","jobQuene":"spot"}"#,
            r#"{"jobName":"x"}"#,
            r#"{"jobName":"-bad","jobDefinition":"train"}"#,
            r#"{"jobName":"x","jobDefinition":"nowhere"}"#,
            r#"{"action":"ExplodeJob","jobId":"6ba7b810-9dad-41d1-80b4-00c04fd430c8"}"#,
            r#"{"jobName":"x","jobDefinition":"train","tags":{"osprey:job-id":"no-uuid"}}"#,
            r#"{"jobName":"x","jobDefinition":"train","dependsOn":[{"jobId":"not-an-id"}]}"#,
        ];
        let is_malformed = random.chance(500_000);
        let bodies: &[&str] = if is_malformed { &malformed } else { &invalid };
        let body = random.pick(bodies).copied().unwrap_or_default().to_owned();
        let truth = if is_malformed { Truth::Malformed } else { Truth::Invalid };
        self.drafts.push(Draft { at_ms, body, sender: SENDERS[0], truth });
    }
}

/// What is true of a message where the policy knows its sender.
fn bound(draft: &mut Draft) {
    let Truth::Job { team, urgent, forbidden, .. } = &mut draft.truth else { return };
    let allowed = senders::allowed(draft.sender, team, *urgent);
    (*team, *urgent, *forbidden) = (allowed.team, allowed.urgent, allowed.forbidden);
}

/// How the messages of a run are mixed.
struct Shape {
    /// Whether pools are to be full, most jobs of one team.
    is_packed: bool,
    chosen: u32,
    dependent: u32,
    again: u32,
    odd: u32,
    circles: u32,
    until: i64,
    seed: u64,
    lineage: u32,
}

impl Job {
    fn draw(random: &mut Random, ids: &[String], at: usize, shape: &Shape, script: usize) -> Self {
        let chosen = random.chance(shape.chosen).then(|| ids.get(at).cloned()).flatten();
        let mut parents = Vec::new();
        while parents.len() < 3 && random.chance(shape.dependent) {
            parents.push(parent(random, ids, at));
        }
        let names = random.pick(&["train", "serve", "sweep"]).copied().unwrap_or("train");
        Self {
            lineage: lineage(ids, at, shape, script, chosen.as_deref()),
            chosen,
            parents,
            script,
            team: if shape.is_packed { usize::from(random.chance(200_000)) } else { random.index(TEAMS.len()) },
            gpus: random.pick(if shape.is_packed { &[4, 1, 2, 8] } else { &[0, 1, 2, 8] }).copied().unwrap_or(1),
            children: if random.chance(60_000) { random.between(2, 4) } else { 0 },
            preemptible: random.chance(250_000),
            urgent: random.chance(if shape.is_packed { 350_000 } else { 250_000 }),
            retries: random.chance(100_000).then(|| u32::try_from(random.below(3)).unwrap_or(0)),
            // Several jobs share a name: a name alone says nothing.
            name: if random.chance(300_000) { names.to_owned() } else { format!("{names}-{script}") },
            timeout: random.chance(200_000),
        }
    }

    fn clone_parts(&self) -> Self {
        Self {
            chosen: self.chosen.clone(),
            parents: self.parents.clone(),
            lineage: self.lineage.clone(),
            name: self.name.clone(),
            ..*self
        }
    }

    /// The same request once more, at times in other words.
    fn again(&self, at_ms: i64, sender: usize) -> Draft {
        let mut draft = self.draft(at_ms, sender, 0);
        if self.parents.is_empty() && self.script % 2 == 1 {
            draft.body = draft.body.replacen('{', r#"{"dependsOn":[],"#, 1);
        }
        draft
    }

    fn draft(&self, at_ms: i64, sender: usize, variant: u32) -> Draft {
        let truth = Truth::Job {
            script: self.script,
            chosen: self.chosen.clone(),
            parents: self.parents.clone(),
            lineage: self.lineage.clone(),
            variant,
            retries: self.retries,
            team: TEAMS.get(self.team).copied().unwrap_or_default(),
            gpus: self.gpus * self.children.max(1),
            saves_ms: self.preemptible.then_some(300_000),
            urgent: self.urgent && !self.preemptible,
            forbidden: false,
        };
        Draft { at_ms, body: self.body(), sender: SENDERS.get(sender).copied().unwrap_or_default(), truth }
    }

    fn body(&self) -> String {
        let mut tags = vec![format!(r#""script":"{}""#, self.script)];
        tags.push(format!(r#""team":"{}""#, TEAMS.get(self.team).copied().unwrap_or_default()));
        tags.extend(self.chosen.as_ref().map(|id| format!(r#""osprey:job-id":"{id}""#)));
        tags.extend(self.lineage.as_ref().map(|id| format!(r#""parent-job-id":"{id}""#)));
        if self.preemptible {
            tags.push(r#""preemptible":"true","checkpoint-interval":"5m""#.to_owned());
        }
        if self.urgent {
            tags.push(r#""environment":"production","workload":"inference""#.to_owned());
        }
        let mut body = format!(r#"{{"jobName":"{}","jobDefinition":"train","tags":{{{}}}"#, self.name, tags.join(","));
        body.push_str(r#","containerOverrides":{"resourceRequirements":[{"type":"VCPU","value":"4"},{"type":"MEMORY","value":"2048"}"#);
        if self.gpus > 0 {
            body.push_str(&format!(r#",{{"type":"GPU","value":"{}"}}"#, self.gpus));
        }
        body.push_str("]}");
        if self.children > 0 {
            body.push_str(&format!(r#","arrayProperties":{{"size":{}}}"#, self.children));
        }
        if !self.parents.is_empty() {
            let parents: Vec<String> = self.parents.iter().map(|id| format!(r#"{{"jobId":"{id}"}}"#)).collect();
            body.push_str(&format!(r#","dependsOn":[{}]"#, parents.join(",")));
        }
        if let Some(retries) = self.retries {
            body.push_str(&format!(r#","retryStrategy":{{"attempts":{}}}"#, retries + 1));
        }
        if self.timeout {
            body.push_str(r#","timeout":{"attemptDurationSeconds":900}"#);
        }
        body.push('}');
        body
    }
}

/// A job to depend on: mostly another of the run, sent earlier or later; at times one that never comes.
fn parent(random: &mut Random, ids: &[String], at: usize) -> String {
    if random.chance(30_000) {
        return uuid(random);
    }
    let near = (at + ids.len() + random.index(9)).saturating_sub(6) % ids.len().max(1);
    ids.get(near).filter(|_| near != at).cloned().unwrap_or_else(|| uuid(random))
}

/// The job that a job names as its parent, if it names one: another of the run, which may name it in turn; at times
/// itself. Drawn from a stream of its own, so that seeds without lineage are what they were before there was any.
fn lineage(ids: &[String], at: usize, shape: &Shape, script: usize, chosen: Option<&str>) -> Option<String> {
    let mut random = Random::fork(shape.seed ^ (script as u64) << 32, "lineage of a job");
    if !random.chance(shape.lineage) {
        return None;
    }
    let itself = chosen.filter(|_| random.chance(50_000)).map(str::to_owned);
    Some(itself.unwrap_or_else(|| parent(&mut random, ids, at)))
}

fn uuid(random: &mut Random) -> String {
    let mut hex = |digits: u32| random.draw() >> (64 - 4 * digits);
    format!("{:08x}-{:04x}-4{:03x}-9{:03x}-{:012x}", hex(8), hex(4), hex(3), hex(3), hex(12))
}
