//! A program that reads one request per line and answers each with a line of durations.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::context::BenchContext;
use crate::shell;

#[derive(Debug)]
pub(super) struct LineProcess {
    name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl LineProcess {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| name.clone())?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self {
            name,
            child,
            input,
            output,
        })
    }

    /// Sends one line; returns the durations in the answer, each in nanoseconds.
    pub(super) fn request(&mut self, line: &str) -> Result<Vec<Duration>> {
        writeln!(self.input, "{line}")?;
        let mut reply = String::new();
        self.output.read_line(&mut reply)?;
        ensure!(!reply.is_empty(), "{} ended at `{line}`", self.name);
        let numbers = reply.split_whitespace();
        numbers
            .map(|number| Ok(Duration::from_nanos(number.parse()?)))
            .collect()
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn close(mut self) -> Result<()> {
        drop(self.input);
        let status = self.child.wait()?;
        ensure!(status.success(), "{} ended with {status}", self.name);
        Ok(())
    }
}

/// Builds a program of the package `ostler-bench`; returns the command that starts it.
pub(super) fn program(bench: &BenchContext, name: &str) -> Result<Command> {
    let program = bench.build(name)?;
    Ok(shell::command(program, bench.workspace.root()))
}
