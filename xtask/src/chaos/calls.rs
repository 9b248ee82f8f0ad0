//! Calls of an MCP client that are in flight while the daemon is killed: each gets one response,
//! with the true result of its command.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::plan::{CommandPlan, Fault};
use crate::test_env::{McpClient, TestEnv};

/// The wait that a call requests, in milliseconds: longer than any command of a round.
const WAIT_MS: u64 = 40_000;
/// The timeout for the responses after the kill, in milliseconds.
const ANSWERED_MS: u64 = 40_000;

/// A client and its pending calls.
#[derive(Debug)]
pub(super) struct CallsInFlight {
    client: McpClient,
    /// The pending calls by request id.
    pending: HashMap<u64, CommandPlan>,
}

impl CallsInFlight {
    /// Sends every call, without reading a response.
    pub(super) fn send(env: &TestEnv, plans: &[CommandPlan]) -> Result<Self> {
        let mut client = McpClient::open(env)?;
        let mut waiting = HashMap::new();
        for plan in plans {
            let command = ["sh", "-c", &plan.script()];
            let arguments = json!({"command": command, "wait_ms": WAIT_MS});
            let call = json!({"name": "exec", "arguments": arguments});
            waiting.insert(client.send("tools/call", &call)?, *plan);
        }
        Ok(Self {
            client,
            pending: waiting,
        })
    }

    /// Reads every response, compares each with its command, and closes the session. Under a fault
    /// that prevents starts, a call may have been refused with an error of that fault.
    pub(super) fn check(mut self, fault: Option<Fault>) -> Result<()> {
        let deadline = Instant::now() + Duration::from_millis(ANSWERED_MS);
        while !self.pending.is_empty() {
            let remaining = self.pending.len();
            let answer = self.client.read_until(deadline);
            let (id, message) =
                answer.with_context(|| format!("{remaining} calls without an answer"))?;
            let Some(plan) = self.pending.remove(&id) else {
                bail!("an answer nobody waits for: {message}");
            };
            if !is_expected_error(fault, &message) {
                let result = check_answer(&plan, fault, &message);
                result.with_context(|| format!("call {id}: {message}"))?;
            }
        }
        self.client.close()
    }
}

fn text(message: &Value) -> String {
    let content = message["result"]["content"].as_array();
    let blocks = content.into_iter().flatten();
    let texts = blocks.filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// Whether the response says that the fault prevents starts.
fn is_expected_error(fault: Option<Fault>, message: &Value) -> bool {
    let reason = match fault {
        Some(Fault::DiskFull | Fault::InodesFull) => "state directory",
        Some(Fault::FewDescriptors) => "RLIMIT_NOFILE",
        Some(
            Fault::RuntimeDirectoryRemoved
            | Fault::CgroupsRemoved
            | Fault::Neighbour
            | Fault::InputEnds,
        )
        | None => return false,
    };
    message["result"]["isError"] == true && text(message).contains(reason)
}

/// Compares the status and the last line with the command; a full disk may have cost the line.
fn check_answer(plan: &CommandPlan, fault: Option<Fault>, message: &Value) -> Result<()> {
    let text = text(message);
    let status = format!("exit {}", plan.code);
    ensure!(text.contains(&status), "it does not say '{status}'");
    if fault.is_some_and(Fault::is_of_disk) {
        return Ok(());
    }
    let last = plan.lines.filter(|lines| *lines > 0);
    let last = last.map(|lines| format!("line {lines}"));
    ensure!(
        last.is_none_or(|last| text.lines().any(|line| line == last)),
        "its last line is missing"
    );
    Ok(())
}
