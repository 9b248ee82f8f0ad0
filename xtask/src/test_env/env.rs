//! The directories, and the environment variables that point the binary at them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::http;
use super::procs::{ProcessHandle, of_env};
use crate::shell;

/// The timeout for a daemon to shut down, in milliseconds.
const SHUTDOWN_MS: u64 = 10_000;

/// An installation of the binary with a state directory of its own.
#[derive(Debug)]
pub(crate) struct TestEnv {
    dir: TempDir,
    binary: PathBuf,
}

impl TestEnv {
    /// Creates directories below `parent`; the binary must have been built.
    pub(crate) fn new(parent: &Path, binary: &Path) -> Result<Self> {
        if !binary.exists() {
            bail!(
                "{} is not built; run `cargo build --profile dist`",
                binary.display()
            );
        }
        let dir = tempfile::Builder::new()
            .prefix("ostler-")
            .tempdir_in(parent)?;
        for name in ["state", "run", "config", "home", "work"] {
            let path = dir.path().join(name);
            fs::create_dir(&path)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        }
        Ok(Self {
            dir,
            binary: binary.to_owned(),
        })
    }

    /// The root of all directories.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A working directory for commands.
    pub(crate) fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state/ostler")
    }

    /// The binary with this environment and empty standard input.
    pub(crate) fn ostler(&self, args: &[&str]) -> Command {
        let mut command = shell::command(&self.binary, &self.work());
        command.args(args).env_clear();
        command
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8");
        command.env("HOME", self.path().join("home"));
        command.env("XDG_STATE_HOME", self.path().join("state"));
        command.env("OSTLER_STATE_DIR", self.state());
        command.env("OSTLER_RUNTIME_DIR", self.path().join("run/ostler"));
        command.env("XDG_RUNTIME_DIR", self.path().join("run"));
        // More than any benchmark has in flight; the quota has tests of its own.
        command.env("OSTLER_QUOTAS_FINITE_PER_SESSION", "100");
        command.env("OSTLER_QUOTAS_OTHERS_PER_PRINCIPAL", "2000");
        command.env("XDG_CONFIG_HOME", self.path().join("config"));
        command
    }

    /// Sends one request to the daemon's socket; returns its JSON response.
    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let socket = self.path().join("run/ostler/daemon.sock");
        let answer = http::request(&socket, method, path, body)?;
        if !(200..300).contains(&answer.status) {
            bail!("{method} {path}: {} {}", answer.status, answer.body);
        }
        if answer.body.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&answer.body).context("an answer that is not JSON")
    }

    /// The daemon, verified to be that of this environment.
    pub(crate) fn daemon(&self) -> Result<ProcessHandle> {
        let health = self.request("GET", "/api/v1/health", None)?;
        let pid = health["pid"]
            .as_u64()
            .context("the health route names no pid")?;
        let proc = ProcessHandle::open(u32::try_from(pid)?)?;
        if proc.comm() != "ostler-daemon" || !proc.belongs_to(self.path()) {
            bail!(
                "pid {pid} ({}) is not the daemon of this environment",
                proc.comm()
            );
        }
        Ok(proc)
    }

    /// All processes of this environment with this comm name.
    pub(crate) fn processes_named(&self, comm: &str) -> Vec<ProcessHandle> {
        let ours = of_env(self.path());
        ours.into_iter()
            .filter(|proc| proc.comm() == comm)
            .collect()
    }

    /// Shuts the daemon down and waits until no process of the environment runs.
    pub(crate) fn shut_down(&self) -> Result<()> {
        let before = of_env(self.path());
        if self.request("POST", "/api/v1/shutdown", None).is_err() && before.is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + Duration::from_millis(SHUTDOWN_MS);
        let staying: Vec<String> = before
            .iter()
            .filter(|proc| !proc.wait_gone(deadline))
            .map(ToString::to_string)
            .collect();
        if staying.is_empty() {
            Ok(())
        } else {
            bail!("still there: {}", staying.join(", "))
        }
    }

    /// Keeps the directories on drop, to examine a failure.
    pub(crate) fn keep_on_drop(&mut self) {
        self.dir.disable_cleanup(true);
    }
}

impl Drop for TestEnv {
    /// Kills the remaining processes of this environment.
    fn drop(&mut self) {
        for proc in of_env(self.dir.path()) {
            proc.kill();
        }
    }
}
