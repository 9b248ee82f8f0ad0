//! A daemon that can be killed: this executable with [`DAEMON_ARGUMENT`].

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use ostler_backend::{Backend, ProcessEvent};
use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_model::{ExecutionId, OrphanPolicy};

use crate::support::{next_event, sh, this_executable, wait_started};

/// Prefix of the state directory: without a zygote.
pub(crate) const THREADS: &str = "threads:";
/// The prefix of a script whose remaining processes are kept; its line is printed once it has
/// detached.
pub(crate) const KEPT: &str = "kept:";
/// The first argument of the daemon role; then a state directory and scripts to run.
pub(crate) const DAEMON_ARGUMENT: &str = "__daemon";

/// Starts the scripts, prints `id pid` for each that runs, lives until its input closes.
pub(crate) fn daemon_main(words: Vec<String>) -> ExitCode {
    let (state, scripts) = words.split_first().expect("a state directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (state, zygote) = match state.strip_prefix(THREADS) {
            Some(state) => (state, ZygoteConfig::InProcess),
            None => (state.as_str(), this_executable()),
        };
        let opened = LocalBackend::open(Path::new(state), zygote).await;
        let backend = opened.expect("the backend opens");
        let mut handles = Vec::new();
        for script in scripts {
            let kept = script.strip_prefix(KEPT);
            let mut plan = sh(kept.unwrap_or(script));
            if kept.is_some() {
                plan.orphan_policy = OrphanPolicy::Keep;
            }
            plan.report_start = true;
            plan.timeouts.grace = Duration::from_millis(200);
            let id = plan.id;
            let mut handle = backend.spawn(plan).await.expect("it spawns");
            let pid = wait_started(&mut handle).await;
            if kept.is_some() {
                next_event(&mut handle, |report| {
                    matches!(report, ProcessEvent::Detached { .. }).then_some(())
                })
                .await;
            }
            let mut out = std::io::stdout();
            writeln!(out, "{id} {pid}").expect("read by the case");
            handles.push(handle);
        }
        let wait = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
        let _closed = wait.await;
    });
    ExitCode::SUCCESS
}

/// A running test daemon.
pub(crate) struct TestDaemon {
    child: Child,
    pub(crate) runs: Vec<(ExecutionId, i32)>,
}

impl TestDaemon {
    pub(crate) fn start(state: &Path, scripts: &[&str]) -> Self {
        let executable = std::env::current_exe().expect("tests have a path");
        let mut child = Command::new(executable)
            .arg(DAEMON_ARGUMENT)
            .arg(state)
            .args(scripts)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let runs = lines.take(scripts.len()).map(|line| {
            let line = line.expect("it runs");
            let (id, pid) = line.split_once(' ').expect("two words");
            (id.parse().expect("an id"), pid.parse().expect("a pid"))
        });
        let runs = runs.collect();
        Self { child, runs }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it ends");
    }
}
