//! Runs other programs.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::console;

/// A command in `dir` with empty standard input.
pub(crate) fn command(program: impl AsRef<OsStr>, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null());
    command
}

/// The command as one would type it.
pub(crate) fn display(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs it to its end and prints its output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = watch(command, |_| {})?;
    if !status.success() {
        bail!("{} ended with {status}", display(command));
    }
    Ok(())
}

/// Its output, if it succeeds.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", display(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} ended with {}: {}",
            display(command),
            output.status,
            stderr.trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Milliseconds that lines may still arrive after a program exited, while a process that it left
/// behind holds its streams.
const LATE_LINES_MS: u64 = 2_000;

/// An event of a running program.
enum ChildEvent {
    /// A line of either stream.
    Line(Vec<u8>),
    /// The exit of the program.
    Ended(io::Result<ExitStatus>),
}

/// Runs it, prints every line of both its streams, and passes each to `on_line`.
pub(crate) fn watch(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<ExitStatus> {
    console::print_line(format_args!("$ {}", display(command)));
    let events =
        spawn_reader(command).with_context(|| format!("cannot run {}", display(command)))?;
    let mut status = None;
    while let Some(event) = next_event(&events, status.is_some()) {
        match event {
            ChildEvent::Line(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let text = text.trim_end_matches(['\n', '\r']);
                console::print_line(format_args!("{text}"));
                on_line(&console::strip_ansi(text));
            }
            ChildEvent::Ended(ended) => status = Some(ended?),
        }
    }
    status.context("nobody saw its end")
}

fn next_event(events: &Receiver<ChildEvent>, ended: bool) -> Option<ChildEvent> {
    if ended {
        events
            .recv_timeout(Duration::from_millis(LATE_LINES_MS))
            .ok()
    } else {
        events.recv().ok()
    }
}

fn spawn_reader(command: &mut Command) -> io::Result<Receiver<ChildEvent>> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command holds both write ends until it is given other streams.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (lines, receiver) = mpsc::sync_channel(OUTPUT_LINES);
    let ends = lines.clone();
    thread::spawn(move || read_lines(reader, &lines));
    thread::spawn(move || ends.send(ChildEvent::Ended(child.wait())));
    Ok(receiver)
}

/// The most lines that are read ahead.
const OUTPUT_LINES: usize = 1_000;

fn read_lines(reader: io::PipeReader, lines: &SyncSender<ChildEvent>) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        if lines
            .send(ChildEvent::Line(std::mem::take(&mut line)))
            .is_err()
        {
            return;
        }
    }
}

/// Whether a program of this name is on the path.
pub(crate) fn is_on_path(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
