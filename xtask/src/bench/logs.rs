//! Long logs of real tools: how many of the failures a result shows, compared with plain head and
//! tail of the same length.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::json;

use super::context::BenchContext;
use super::machine::Machine;
use super::stats::median;
use crate::console::print_line;
use crate::shell;
use crate::test_env::McpClient;
use crate::workspace::Workspace;

/// The script that generates the projects.
const GENERATE: &str = "crates/interface-tests/tests/it/fixtures/logs/generate.py";

/// The logs, each with the program that it needs.
const KINDS: &[(&str, &str)] = &[
    ("cargo-check", "cargo"),
    ("cargo-test", "cargo"),
    ("npm", "npm"),
    ("node-spec", "node"),
    ("node-tap", "node"),
    ("pytest", "python3"),
    ("unittest", "python3"),
    ("make", "gcc"),
    ("javac", "javac"),
    ("bars", "python3"),
];

/// Large outputs without failures: the shell script, and what the result must contain.
const LARGE: &[(&str, &str, &[&str])] = &[
    ("100 MB of numbers", "seq 13000000", &["13000000"]),
    (
        "100 MB, an error after 10 MB",
        "seq 1300000; echo error: early; seq 11700000",
        &["error: early"],
    ),
    (
        "40 MB of errors",
        "seq -f 'error: item %.0f is bad' 1500000",
        &["error: item 1 is bad", "error: item 1500000 is bad"],
    ),
    (
        "one line of 20 MB",
        "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo error: end",
        &["[… a line of 20000001 bytes …]", "error: end"],
    ),
];

/// The generator's description of a project.
#[derive(Debug, Deserialize)]
struct LogPlan {
    run: Vec<String>,
    failures: Vec<Vec<String>>,
}

/// One line of the table.
struct LogRow {
    name: String,
    lines: usize,
    bytes: usize,
    answer_chars: usize,
    answer_ms: f64,
    failures: usize,
    reported: usize,
    head_and_tail: usize,
}

/// Generates logs, queries, compares, and writes the table below `docs/bench`.
pub(super) fn measure(bench: &BenchContext, machine: &Machine, only: &[String]) -> Result<PathBuf> {
    let env = bench.started_env()?;
    let mut mcp = McpClient::open(&env)?;
    let mut table = Vec::new();
    let is_selected = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    for (kind, program) in KINDS.iter().filter(|(kind, _)| is_selected(kind)) {
        if !shell::is_on_path(program) {
            print_line(format_args!("{kind}: there is no {program}"));
            continue;
        }
        print_line(format_args!("measuring {kind}"));
        let (log, plan) = generate_log(bench.workspace, env.path(), kind)?;
        let script = format!("cat '{}'", log.display());
        let text = fs::read(&log)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        table.push(compare(
            bench,
            &mut mcp,
            kind,
            &script,
            &text,
            &plan.failures,
        )?);
    }
    for (name, script, needles) in LARGE.iter().filter(|(name, ..)| is_selected(name)) {
        print_line(format_args!("measuring {name}"));
        let text = shell::capture(shell::command("sh", env.path()).args(["-c", script]))?;
        let failures: Vec<_> = needles
            .iter()
            .map(|part| vec![(*part).to_owned()])
            .collect();
        table.push(compare(bench, &mut mcp, name, script, &text, &failures)?);
    }
    mcp.close()?;
    publish(bench.workspace.root(), machine, &table)
}

/// Runs the tool on a project of this kind; returns its log, both streams in arrival order.
fn generate_log(workspace: &Workspace, dir: &Path, kind: &str) -> Result<(PathBuf, LogPlan)> {
    let project = dir.join("logs").join(kind);
    fs::create_dir_all(&project)?;
    let mut generate = shell::command("python3", workspace.root());
    let plan = shell::capture(generate.arg(GENERATE).arg(kind).arg(&project))?;
    let plan: LogPlan = serde_json::from_str(&plan).context("what the generator prints")?;
    let [program, arguments @ ..] = plan.run.as_slice() else {
        bail!("{kind}: nothing to run");
    };
    let program = match kind {
        "pytest" => workspace.python().into_os_string(),
        _ => program.into(),
    };
    let log = dir.join("logs").join(format!("{kind}.log"));
    let file = File::create(&log)?;
    let mut tool: Command = shell::command(program, &project);
    tool.args(arguments)
        .env("CARGO_TARGET_DIR", project.join("target"))
        .stdout(file.try_clone()?)
        .stderr(file);
    let status = tool.status().with_context(|| shell::display(&tool))?;
    if status.success() {
        bail!("{kind} was to fail");
    }
    Ok((log, plan))
}

/// Queries the log as an agent would, several times, and compares.
fn compare(
    bench: &BenchContext,
    mcp: &mut McpClient,
    name: &str,
    script: &str,
    log: &str,
    failures: &[Vec<String>],
) -> Result<LogRow> {
    let mut millis = Vec::new();
    let mut answer = String::new();
    for _round in 0..=bench.rounds {
        let begin = Instant::now();
        answer = run_command(mcp, script)?;
        millis.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    millis.remove(0);
    let count_reported = |text: &str| {
        let is_shown = |failure: &&Vec<String>| failure.iter().all(|part| text.contains(part));
        failures.iter().filter(is_shown).count()
    };
    let answer_chars = answer.chars().count();
    Ok(LogRow {
        name: name.to_owned(),
        lines: log.lines().count(),
        bytes: log.len(),
        answer_chars,
        answer_ms: median(&millis),
        failures: failures.len(),
        reported: count_reported(&answer),
        head_and_tail: count_reported(&head_and_tail_of(log, answer_chars)),
    })
}

fn run_command(mcp: &mut McpClient, script: &str) -> Result<String> {
    let arguments = json!({
        "command": "/bin/sh", "args": ["-c", script], "directory": "/", "timeout": 60
    });
    let call = json!({"name": "command_execute", "arguments": arguments});
    let result = mcp.request("tools/call", &call)?;
    let blocks = result["content"].as_array().context("content")?;
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

/// What most tools return: the first and the last characters.
fn head_and_tail_of(log: &str, chars: usize) -> String {
    let half = chars / 2;
    let head: String = log.chars().take(half).collect();
    let tail: String = log.chars().rev().take(half).collect();
    let tail: String = tail.chars().rev().collect();
    format!("{head}\n…\n{tail}")
}

fn publish(root: &Path, machine: &Machine, table: &[LogRow]) -> Result<PathBuf> {
    let mut text = format!(
        "# What failed, in answers to long logs, {}\n\n{machine}\n\
         Logs printed by running the tools on generated projects; the answer is that of \
         `command_execute` for `cat log`, the\ncomparison the first and the last characters of \
         the same log, as many as the answer has. A failure is told when its\nplace and its \
         message are both there. Time: from the call to its answer, `cat` and journal included, \
         median.\n\n\
         | log | lines | bytes | answer, characters | ms | failures | told | head + tail |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
        machine.date
    );
    for line in table {
        // Writing to a string does not fail.
        let _written = writeln!(
            text,
            "| {} | {} | {} | {} | {:.0} | {} | {} | {} |",
            line.name,
            line.lines,
            line.bytes,
            line.answer_chars,
            line.answer_ms,
            line.failures,
            line.reported,
            line.head_and_tail
        );
    }
    print_line(format_args!("{text}"));
    let path = root.join(format!("docs/bench/logs-{}.md", machine.date));
    fs::write(&path, text)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::head_and_tail_of;

    #[test]
    fn head_and_tail_are_what_they_say() {
        assert_eq!(head_and_tail_of("abcdefgh", 4), "ab\n…\ngh");
    }
}
