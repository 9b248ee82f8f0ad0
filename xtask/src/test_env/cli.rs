//! The command line interface, as a user calls it.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::env::TestEnv;
use super::procs::{ProcessHandle, executed_below, members};
use crate::shell;

/// The fields of an execution that the tests need.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CliInfo {
    /// The whole id, as in the environment of its processes.
    pub(crate) uuid: String,
    /// running, completed, failed, terminated or error.
    pub(crate) status: String,
    pub(crate) exit_code: Option<i32>,
    /// Why it was not successful.
    pub(crate) error_message: Option<String>,
    /// The leader's OS pid.
    pub(crate) os_pid: Option<u32>,
    /// What could not be kept or enforced.
    #[serde(default)]
    pub(crate) degraded: serde_json::Value,
}

impl CliInfo {
    /// Whether it reports that something could not be kept.
    pub(crate) fn is_degraded(&self) -> bool {
        self.degraded
            .as_array()
            .is_some_and(|entries| !entries.is_empty())
    }
}

impl TestEnv {
    /// Starts a shell script in the background; returns its id.
    pub(crate) fn start(&self, script: &str) -> Result<String> {
        let stdout = shell::capture(&mut self.ostler(&["run", "-d", "--", "sh", "-c", script]))?;
        Ok(stdout.trim().to_owned())
    }

    /// Starts a program in a terminal in the background; returns its id.
    pub(crate) fn start_in_terminal(&self, command: &[&str]) -> Result<String> {
        let words = [&["run", "-d", "-t", "--"], command].concat();
        Ok(shell::capture(&mut self.ostler(&words))?.trim().to_owned())
    }

    /// Types into a terminal: text, then keys.
    pub(crate) fn send(&self, id: &str, text: &str, keys: &[&str]) -> Result<()> {
        let mut words = vec!["send", id, text];
        words.extend(keys.iter().flat_map(|key| ["--key", key]));
        shell::capture(&mut self.ostler(&words)).map(drop)
    }

    /// The screen of a terminal.
    pub(crate) fn screen(&self, id: &str) -> Result<String> {
        shell::capture(&mut self.ostler(&["screen", id]))
    }

    /// The fields of an execution.
    pub(crate) fn info(&self, id: &str) -> Result<CliInfo> {
        let stdout = shell::capture(&mut self.ostler(&["info", "--json", id]))?;
        serde_json::from_str(&stdout).with_context(|| format!("info --json said {stdout}"))
    }

    /// All executions that are listed.
    pub(crate) fn list(&self) -> Result<Vec<CliInfo>> {
        let stdout = shell::capture(&mut self.ostler(&["ps", "--all", "--json"]))?;
        serde_json::from_str(&stdout).with_context(|| format!("ps --json said {stdout}"))
    }

    /// Its output, byte for byte: a line end of a terminal is two characters.
    pub(crate) fn output(&self, id: &str) -> Result<String> {
        let raw = shell::capture(&mut self.ostler(&["logs", "--raw", id]))?;
        Ok(raw.replace("\r\n", "\n"))
    }

    /// Stops it and waits for its end.
    pub(crate) fn stop(&self, id: &str) -> Result<()> {
        shell::capture(&mut self.ostler(&["stop", id])).map(drop)
    }

    /// Waits for its end, whatever the result.
    pub(crate) fn wait(&self, id: &str) -> Result<CliInfo> {
        // The exit code is that of the command; only the fields are needed here.
        let _status = self.ostler(&["wait", id]).output()?;
        self.info(id)
    }

    /// The shim of a running execution: the parent of its leader.
    pub(crate) fn shim(&self, info: &CliInfo) -> Result<ProcessHandle> {
        let leader = ProcessHandle::open(info.os_pid.context("it has no process")?)?;
        let shim = ProcessHandle::open(leader.parent().context("it is gone")?)?;
        if shim.comm() == "ostler-shim" && shim.belongs_to(self.path()) {
            return Ok(shim);
        }
        anyhow::bail!("the parent of {leader} is {shim}, no shim of this environment")
    }

    /// Running processes of any execution in this environment.
    pub(crate) fn stray_processes(&self) -> Vec<ProcessHandle> {
        executed_below(self.path())
    }

    /// Running processes of an execution's tree.
    pub(crate) fn members(info: &CliInfo) -> Vec<ProcessHandle> {
        members(&info.uuid)
    }
}
