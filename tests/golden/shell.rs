//! A shell that a page is read in.

use std::io::{self, Write as _};
use std::os::unix::{fs::symlink, process::CommandExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::local::Folder;

/// Longest time for a command, and for what a page shows to come true, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(90);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// Folders of the repository that pages name.
const BESIDE: [&str; 3] = ["docs", "events", "shared"];

/// What a command said: both outputs as a terminal shows them.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) output: String,
    pub(crate) code: i32,
}

/// One shell for a page: what a command leaves in variables and in the background is there for the next one.
pub(crate) struct Shell {
    shell: Child,
    input: ChildStdin,
    /// Number of the last command.
    last: usize,
    folder: Folder,
}

impl Shell {
    /// A shell in a fresh folder, in which `osprey` is the program under test.
    pub(crate) fn new(page: &str) -> io::Result<Self> {
        let folder = Folder::new(&format!("page-{}", page.replace(['/', '.'], "-")))?;
        let (work, programs) = (folder.0.join("work"), folder.0.join("programs"));
        for made in [&work, &programs, &folder.0.join("said")] {
            fs::create_dir_all(made)?;
        }
        for beside in BESIDE {
            symlink(osprey_tests::root().join(beside), work.join(beside))?;
        }
        symlink(env!("CARGO_BIN_EXE_osprey-under-test"), programs.join("osprey"))?;
        let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh")
            .current_dir(&work)
            .env("PATH", path)
            .env("NO_COLOR", "1")
            .env("COLUMNS", "120")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let input = shell.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { shell, input, last: 0, folder })
    }

    /// Runs a command; one that only looks until it says what it should.
    pub(crate) fn until(&mut self, command: &str, looks: bool, holds: impl Fn(&Said) -> bool) -> io::Result<Said> {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.run(command)?;
            if !looks || holds(&said) || Instant::now() > until {
                return Ok(said);
            }
            thread::sleep(PAUSE);
        }
    }

    fn run(&mut self, command: &str) -> io::Result<Said> {
        self.last += 1;
        let file = |ending: &str| self.folder.0.join("said").join(format!("{}.{ending}", self.last));
        let (out, code, whole) = (file("out"), file("code"), file("whole"));
        let (to, at, then) = (out.display(), code.display(), whole.display());
        writeln!(self.input, "{{ {command}\n}} </dev/null >{to} 2>&1; echo $? >{at}; mv {at} {then}")?;
        let until = Instant::now() + PATIENCE;
        while !whole.exists() {
            if Instant::now() > until || self.shell.try_wait()?.is_some() {
                let so_far = fs::read_to_string(&out).unwrap_or_default();
                return Err(io::Error::other(format!("`{command}` doesn't end, or ended the shell: {so_far}")));
            }
            thread::sleep(Duration::from_millis(5));
        }
        let code = fs::read_to_string(&whole)?.trim().parse().map_err(io::Error::other)?;
        Ok(Said { output: self.named(&fs::read_to_string(&out)?), code })
    }

    /// Paths of the folder as a page writes them.
    fn named(&self, output: &str) -> String {
        let work = |path: &Path| format!("{}/", path.join("work").display());
        let real: Option<PathBuf> = fs::canonicalize(&self.folder.0).ok();
        let output = output.replace(&work(&self.folder.0), "");
        real.map_or(output.clone(), |real| output.replace(&work(&real), ""))
    }
}

impl Drop for Shell {
    /// Ends what the page has left in the background.
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.shell.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.shell.wait();
    }
}
