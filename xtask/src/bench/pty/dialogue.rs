//! A dialogue of an agent with a shell: it types a line and waits for the output, in one call or in
//! two, over MCP; compared with a peer that does the same.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::super::context::BenchContext;
use super::super::report::{Promise, ReportRow};
use super::super::stats::LatencySummary;
use super::peers;
use super::raw_pty::RawPty;
use crate::shell;
use crate::test_env::{McpClient, TestEnv};

/// Lines of one round.
const LINES: u32 = 50;
/// The shell, the same in every terminal, with the same settings (the peer's terminal is raw). It
/// has no prompt: with one, output would not begin on a line of its own whenever a line was typed
/// before the prompt.
const SHELL: [&str; 3] = [
    "/bin/sh",
    "-c",
    "stty sane; echo ready; PS1= exec /bin/sh -i",
];
/// The line that it prints once it reads input.
const READY: &str = "ready";
/// The timeout of an answer in milliseconds.
const ANSWER_MS: u64 = 30_000;
/// A terminal that accepts lines.
trait LineTerminal {
    /// Types a line and waits until a line matches the pattern.
    fn exchange(&mut self, line: &str, pattern: &str) -> Result<()>;
}

/// `pty_write` with a pattern to wait for.
struct OstlerTerminal {
    mcp: McpClient,
    session: String,
}

/// pty-mcp, which has one tool for both steps, and a tool for each.
struct PtyMcpTerminal {
    mcp: McpClient,
    session: String,
    single_call: bool,
}

/// A raw terminal, read until the line appears.
struct BareTerminal {
    raw: RawPty,
}

/// From a typed line to its answer, p50 and p99.
pub(super) fn to_the_answer(bench: &BenchContext) -> Result<Vec<ReportRow>> {
    let env = bench.started_env()?;
    let mut bare = BareTerminal::start(&env)?;
    let mut ours = OstlerTerminal::start(&env)?;
    let mut theirs = PtyMcpTerminal::start(bench, &env)?;
    let mut samples = [const { Vec::new() }; 4];
    let lines = u32::try_from(bench.count(LINES as usize))?;
    for round in 0..=bench.rounds {
        let mut took = |terminal: &mut dyn LineTerminal, list: usize| -> Result<()> {
            let some = run_dialogue(terminal, round * LINES, lines)?;
            if round > 0 {
                samples[list].extend(some);
            }
            Ok(())
        };
        took(&mut bare, 0)?;
        took(&mut ours, 1)?;
        if let Some(theirs) = &mut theirs {
            for (in_one, list) in [(true, 2), (false, 3)] {
                theirs.single_call = in_one;
                took(theirs, list)?;
            }
        }
    }
    bare.raw.end()?;
    ours.mcp.close()?;
    let has_peer = theirs.is_some();
    if let Some(theirs) = theirs {
        theirs.mcp.close()?;
    }
    let [floor, ours, in_one, in_two] = samples.map(|list| LatencySummary::from_samples(&list));
    let peer = has_peer.then_some((in_one, in_two));
    Ok(rows(floor, ours, peer))
}

fn rows(
    floor: LatencySummary,
    ours: LatencySummary,
    peer: Option<(LatencySummary, LatencySummary)>,
) -> Vec<ReportRow> {
    let what = "a line typed and its answer waited for over MCP";
    let at_most = Promise::at_most(1.0, "≤ 1.0× the best peer");
    let mut rows = match peer {
        Some((in_one, in_two)) => {
            let best = if in_two.p50 < in_one.p50 {
                in_two
            } else {
                in_one
            };
            vec![
                ReportRow::ratio(
                    &format!("{what}, p50, against pty-mcp"),
                    ours.p50,
                    best.p50,
                    "ms",
                    at_most,
                ),
                ReportRow::ratio("the same, p99", ours.p99, best.p99, "ms", at_most),
                ReportRow::ratio(
                    "pty-mcp by `pty_write` and `pty_read_until`, p50, against `pty_prompt`",
                    in_two.p50,
                    in_one.p50,
                    "ms",
                    Promise::NONE,
                ),
                ReportRow::ratio("the same, p99", in_two.p99, in_one.p99, "ms", Promise::NONE),
            ]
        }
        None => {
            let left_out = Promise::at_most(f64::INFINITY, "none: pty-mcp is not installed");
            vec![
                ReportRow::absolute(&format!("{what}, p50"), ours.p50, "ms", left_out),
                ReportRow::absolute("the same, p99", ours.p99, "ms", left_out),
            ]
        }
    };
    rows.extend([
        ReportRow::ratio(
            &format!("{what}, p50, against a bare terminal"),
            ours.p50,
            floor.p50,
            "ms",
            Promise::NONE,
        ),
        ReportRow::ratio("the same, p99", ours.p99, floor.p99, "ms", Promise::NONE),
    ]);
    rows
}

/// Types lines, numbered from `first` on; returns the duration of each exchange.
fn run_dialogue(terminal: &mut dyn LineTerminal, first: u32, lines: u32) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    for number in first..first + lines {
        let line = format!("echo token-{number}\n");
        // Must not match the echo of what was typed.
        let pattern = format!(r"(?m)^token-{number}\r?$");
        let begin = Instant::now();
        terminal.exchange(&line, &pattern)?;
        took.push(begin.elapsed());
    }
    Ok(took)
}

impl OstlerTerminal {
    fn start(env: &TestEnv) -> Result<Self> {
        let mut mcp = McpClient::open_with(env, &["mcp", "--tools", "pty"])?;
        let arguments = json!({"command": SHELL, "cwd": env.work()});
        let started = call(&mut mcp, "pty_start", &arguments)?;
        let session = started["_meta"]["ostler/result"]["session"].as_str();
        let session = session.with_context(|| format!("a start without a session: {started}"))?;
        let session = session.to_owned();
        let ready = json!({"until": "pattern", "pattern": READY, "at_most_ms": ANSWER_MS});
        let wait = format!("/api/v1/executions/{session}/wait");
        env.request("POST", &wait, Some(&ready))?;
        Ok(Self { mcp, session })
    }
}

impl LineTerminal for OstlerTerminal {
    fn exchange(&mut self, line: &str, pattern: &str) -> Result<()> {
        let arguments = json!({
            "session": self.session, "text": line, "pattern": pattern, "wait_ms": ANSWER_MS,
        });
        let answer = call(&mut self.mcp, "pty_write", &arguments)?;
        let why = &answer["_meta"]["ostler/result"]["why"];
        ensure!(why == "pattern", "a wait ended otherwise: {answer}");
        Ok(())
    }
}

impl PtyMcpTerminal {
    /// None if setup did not install it.
    fn start(bench: &BenchContext, env: &TestEnv) -> Result<Option<Self>> {
        let Some(mut command) = peers::pty_mcp(bench, env) else {
            return Ok(None);
        };
        let mut mcp = McpClient::spawn(&mut command)?;
        let [program, option, script] = SHELL;
        let words = format!("{program} {option} '{script}'");
        let arguments = json!({"command": words, "cwd": env.work(), "owner": "bench"});
        let started = call(&mut mcp, "pty_spawn", &arguments)?;
        let session = text(&started)?.to_owned();
        let mut theirs = Self {
            mcp,
            session,
            single_call: true,
        };
        theirs.call("pty_read_until", json!({"pattern": READY}))?;
        Ok(Some(theirs))
    }

    fn call(&mut self, name: &str, mut arguments: Value) -> Result<Value> {
        arguments["session_id"] = self.session.as_str().into();
        arguments["owner"] = "bench".into();
        call(&mut self.mcp, name, &arguments)
    }
}

impl LineTerminal for PtyMcpTerminal {
    fn exchange(&mut self, line: &str, pattern: &str) -> Result<()> {
        let answer = if self.single_call {
            let arguments = json!({
                "data": line, "patterns": [pattern], "regex": true, "timeout_ms": ANSWER_MS,
            });
            self.call("pty_prompt", arguments)?
        } else {
            self.call("pty_write", json!({"data": line}))?;
            let arguments = json!({
                "pattern": pattern, "regex": true, "timeout_ms": ANSWER_MS,
            });
            self.call("pty_read_until", arguments)?
        };
        let reply: Value = serde_json::from_str(text(&answer)?)?;
        ensure!(reply["matched"] == true, "no match: {answer}");
        Ok(())
    }
}

impl BareTerminal {
    fn start(env: &TestEnv) -> Result<Self> {
        let mut command = shell::command("setsid", &env.work());
        command.arg("--ctty").args(SHELL);
        let raw = RawPty::start(&mut command, false)?;
        let mut bare = Self { raw };
        bare.read_to(READY)?;
        Ok(bare)
    }

    fn read_to(&mut self, text: &str) -> Result<()> {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(text) {
            let read = self.raw.read()?;
            ensure!(!read.is_empty(), "the shell ended");
            seen.extend(read);
        }
        Ok(())
    }
}

impl LineTerminal for BareTerminal {
    fn exchange(&mut self, line: &str, _: &str) -> Result<()> {
        let word = line.trim().trim_start_matches("echo ");
        // The line itself: after a line end, before another one.
        let answer = format!("\n{word}\r\n");
        self.raw.write(line.as_bytes())?;
        self.read_to(&answer)
    }
}

fn call(mcp: &mut McpClient, name: &str, arguments: &Value) -> Result<Value> {
    let call = json!({"name": name, "arguments": arguments});
    mcp.request("tools/call", &call)
}

fn text(answer: &Value) -> Result<&str> {
    let text = answer["content"][0]["text"].as_str();
    text.with_context(|| format!("no text: {answer}"))
}
