//! Servers that live for a while: one or two that want the same state directory, of which one gets it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};

/// Divides the timers of Osprey, of Batch and of the queues; the commands themselves are real.
const SPEED: &str = "20";
/// The nodes: two On-Demand and one Spot, of two GPU slots each.
const NODES: [&str; 6] = ["--nodes", "3", "--gpus-per-node", "2", "--spot-nodes", "1"];
/// How unkind the event bus is. A loss is repaired within three real seconds.
const EVENTS: [&str; 6] = ["--event-duplicates", "0.2", "--event-delay", "2", "--event-loss", "0.05"];
/// How long a server may take to be ready, and one that is turned away or asked to stop to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Servers of one life.
pub struct Servers {
    contenders: Vec<Contender>,
}

struct Contender {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// Starts `count` servers at once.
pub fn start(osprey: &Path, folder: &Path, life: usize, count: usize) -> Result<Servers, String> {
    let start = |number: usize| {
        let name = |ending: &str| folder.join(format!("server-{life}-{number}.{ending}"));
        let file = |path: &Path| File::create(path).map_err(|error| error.to_string());
        let (out, err) = (name("out"), name("err"));
        let child = Command::new(osprey)
            .args(["local", "serve", "--output", "json", "--port", "0", "--speed", SPEED])
            .args(NODES)
            .args(EVENTS)
            .arg("--state")
            .arg(folder.join("state"))
            .current_dir(osprey_tests::root())
            .stdin(Stdio::null())
            .stdout(file(&out)?)
            .stderr(file(&err)?)
            .spawn()
            .map_err(|error| format!("{} can't be started: {error}", osprey.display()))?;
        Ok(Contender { child, out, err })
    };
    Ok(Servers { contenders: (0..count).map(start).collect::<Result<_, String>>()? })
}

impl Servers {
    /// Ends all of them by SIGKILL.
    pub fn end_by_force(mut self) -> Result<(), String> {
        for contender in &mut self.contenders {
            let ended = contender.child.kill().and_then(|()| contender.child.wait());
            ended.map_err(|error| format!("a server can't be killed: {error}"))?;
        }
        Ok(())
    }

    /// Waits until one of them serves and the others were turned away.
    pub fn one_serves(&mut self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let serving = self.contenders.iter().filter(|contender| contender.is_serving()).count();
            let mut turned_away = 0;
            for contender in &mut self.contenders {
                turned_away += usize::from(contender.was_turned_away()?);
            }
            if serving > 1 {
                return Err("two servers serve one state directory".to_owned());
            }
            if serving == 1 && turned_away + 1 == self.contenders.len() {
                return Ok(());
            }
            if Instant::now() > until {
                let said: Vec<String> = self.contenders.iter().map(Contender::complaint).collect();
                return Err(format!("{serving} serve and {turned_away} were turned away: {}", said.join("; ")));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks the one that serves to stop, as Ctrl-C does, and waits for its end.
    pub fn stop(mut self) -> Result<(), String> {
        let Some(server) = self.contenders.iter_mut().find(|contender| contender.is_serving()) else {
            return Err("no server is left to stop".to_owned());
        };
        let pid = i32::try_from(server.child.id()).ok().and_then(Pid::from_raw);
        pid.map_or(Ok(()), |pid| kill_process(pid, Signal::INT)).map_err(|error| error.to_string())?;
        let until = Instant::now() + PATIENCE;
        loop {
            match server.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the server ended with {status}: {}", server.complaint())),
                None if Instant::now() > until => return Err("the server did not stop".to_owned()),
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for contender in &mut self.contenders {
            // One that has ended needs no end.
            let _ = contender.child.kill();
            let _ = contender.child.wait();
        }
    }
}

impl Contender {
    fn is_serving(&self) -> bool {
        fs::read_to_string(&self.out).is_ok_and(|text| text.ends_with('\n'))
    }

    fn complaint(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default().trim().to_owned()
    }

    /// Whether it has ended because another one has the directory; any other end is a fault.
    fn was_turned_away(&mut self) -> Result<bool, String> {
        let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? else { return Ok(false) };
        let complaint = self.complaint();
        let told = complaint.contains("runs a pipeline in the state directory");
        if status.code() == Some(1) && told {
            Ok(true)
        } else {
            Err(format!("a server ended with {status}: {complaint}"))
        }
    }
}
