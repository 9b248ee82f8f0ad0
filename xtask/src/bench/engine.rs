//! The engine alone, embedded as a library: no MCP, no socket.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::floor;
use super::report::{Limit, Row};
use super::run::Bench;
use super::stats::Summary;
use crate::lab::Lab;
use crate::sh;

/// Commands of one round.
const COMMANDS: usize = 200;

/// The example program of the library that runs commands and says how long each took.
pub(super) struct Embedded {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Embedded {
    /// Builds and starts it with that many bytes of heap touched.
    pub(super) fn open(bench: &Bench, lab: &Lab, heap_bytes: u64) -> Result<Self> {
        let root = bench.workspace.root();
        let mut cargo = sh::command("cargo", root);
        cargo.args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "ostler",
            "--example",
            "measure",
        ]);
        sh::run(&mut cargo)?;
        let program = bench.workspace.target().join("release/examples/measure");
        let mut command = sh::command(program, &lab.work());
        command
            .arg(bench.workspace.ostler())
            .arg(lab.path().join("embedded"));
        command
            .arg(heap_bytes.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("the example `measure`")?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self {
            child,
            input,
            output,
        })
    }

    /// One line to it; the durations in its answer, each in nanoseconds.
    pub(super) fn ask(&mut self, line: &str) -> Result<Vec<Duration>> {
        writeln!(self.input, "{line}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        ensure!(
            !answer.is_empty(),
            "the example `measure` ended at `{line}`"
        );
        let numbers = answer.split_whitespace();
        numbers
            .map(|number| Ok(Duration::from_nanos(number.parse()?)))
            .collect()
    }

    /// Ends it.
    pub(super) fn close(mut self) -> Result<()> {
        drop(self.input);
        let status = self.child.wait()?;
        ensure!(
            status.success(),
            "the example `measure` ended with {status}"
        );
        Ok(())
    }
}

/// Start to result, with a small heap and with a gigabyte.
pub(super) fn start_to_result(bench: &Bench) -> Result<Vec<Row>> {
    let (small_lab, large_lab) = (bench.lab()?, bench.lab()?);
    let mut small = Embedded::open(bench, &small_lab, 0)?;
    let mut large = Embedded::open(bench, &large_lab, 1 << 30)?;
    let mut samples = [Vec::new(), Vec::new(), Vec::new()];
    let ask = format!("run {COMMANDS}");
    for round in 0..=bench.rounds {
        let seen = [
            floor::one_by_one(COMMANDS)?,
            small.ask(&ask)?,
            large.ask(&ask)?,
        ];
        if round > 0 {
            samples
                .iter_mut()
                .zip(seen)
                .for_each(|(list, more)| list.extend(more));
        }
    }
    small.close()?;
    large.close()?;
    let [floor, small, large] = samples.map(|list| Summary::of(&list));
    Ok(vec![
        Row::ratio(
            "engine only: start to result, p50",
            (small.p50, floor.p50),
            "ms",
            (Limit::AtMost(1.35), "≤ 1.35×"),
        ),
        Row::ratio(
            "the same with 1 GB of touched memory, against the small heap",
            (large.p50, small.p50),
            "ms",
            (Limit::AtMost(1.15), "≤ 1.15×"),
        ),
        Row::ratio(
            "engine only, p99",
            (small.p99, floor.p99),
            "ms",
            (Limit::AtMost(f64::INFINITY), "none"),
        ),
    ])
}
