//! Writing input to the command, and closing it.

use std::os::fd::OwnedFd;
use std::time::Instant;

use ostler_backend::{IdempotentInput, ProcessEvent};
use rustix::io::Errno;
use rustix::termios::{LocalModes, SpecialCodeIndex, tcgetattr, tcgetpgrp};

use super::AttemptRunner;

/// Ctrl-D, where a terminal names no other character for the end of its input.
const END_OF_TRANSMISSION: u8 = 4;

/// Whether an input is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputRecording {
    /// Where the start requested that.
    AsRequested,
    /// It is a secret.
    Omitted,
}

impl AttemptRunner<'_> {
    /// Writes what the command accepts now, and reports how much that was.
    pub(super) fn handle_input(&mut self, bytes: &[u8], recording: InputRecording) {
        let accepted = self.write_stdin(bytes, recording);
        self.send_input_accepted(accepted);
    }

    /// As [`AttemptRunner::handle_input`], but skips what was accepted before. Without bytes it
    /// only reports the progress.
    pub(super) fn handle_idempotent_input(
        &mut self,
        input: IdempotentInput,
        from: u64,
        bytes: &[u8],
    ) {
        if bytes.is_empty() {
            let input = self.idempotent_inputs.get(input.id);
            self.daemon
                .send(&ProcessEvent::InputProgress { input }, None);
            return;
        }
        let Some(skip) = self
            .idempotent_inputs
            .accepted_before(input, from, bytes.len())
        else {
            return self.send_input_accepted(0);
        };
        let accepted = self.write_stdin(&bytes[skip..], InputRecording::AsRequested);
        self.idempotent_inputs
            .record_accepted(input.id, accepted as u64);
        self.send_input_accepted(skip + accepted);
    }

    fn send_input_accepted(&mut self, accepted: usize) {
        let len = accepted as u64;
        self.daemon.send(&ProcessEvent::InputAccepted { len }, None);
    }

    fn write_stdin(&mut self, bytes: &[u8], recording: InputRecording) -> usize {
        if let Some(end) = self.notifier.on_input(self.sink.end(), Instant::now()) {
            self.daemon.send(&ProcessEvent::Output { end }, None);
        }
        if self.streams.terminal().is_some() {
            self.write_terminal(bytes, recording)
        } else {
            self.write_pipe(bytes, recording)
        }
    }

    fn write_pipe(&mut self, bytes: &[u8], recording: InputRecording) -> usize {
        let Some(input) = &self.input else {
            return 0;
        };
        let (accepted, outcome) = write(input, bytes);
        if outcome.is_err() {
            self.input = None;
        }
        self.record_input(&bytes[..accepted], recording);
        accepted
    }

    /// Writes to the terminal, a line that is longer than the kernel's buffer in parts. A terminal that
    /// no process has open accepts nothing, and may be opened again.
    fn write_terminal(&mut self, bytes: &[u8], recording: InputRecording) -> usize {
        let mut accepted = 0;
        while accepted < bytes.len() {
            let (len, is_full) = self.write_line_part(&bytes[accepted..], recording);
            accepted += len;
            if is_full {
                break;
            }
        }
        accepted
    }

    /// Writes what fits into the unfinished line, and submits that where more follows; returns how
    /// many bytes were accepted, and whether the terminal accepts no more now.
    fn write_line_part(&mut self, bytes: &[u8], recording: InputRecording) -> (usize, bool) {
        let Some(terminal) = self.streams.terminal() else {
            return (0, true);
        };
        let Ok(modes) = tcgetattr(terminal) else {
            let (accepted, _gone) = write(terminal, bytes);
            return (accepted, true);
        };
        let part = self.canonical_line.next_part(&modes, bytes);
        let submitted = part
            .submit
            .map(|code| [&bytes[..part.len], &[code]].concat());
        let part_bytes = submitted.as_deref().unwrap_or(&bytes[..part.len]);
        let (written, _gone) = write(terminal, part_bytes);
        self.canonical_line
            .record_written(&modes, &part_bytes[..written]);
        let accepted = written.min(part.len);
        // Input that the terminal does not echo is often a password: it is not recorded.
        if modes.local_modes.contains(LocalModes::ECHO) {
            self.record_input(&bytes[..accepted], recording);
        }
        (
            accepted,
            written < part_bytes.len() || part_bytes.is_empty(),
        )
    }

    /// Records what was written, where that is requested. Nobody is notified: it is no output.
    fn record_input(&mut self, written: &[u8], recording: InputRecording) {
        if self.streams.records_input() && recording == InputRecording::AsRequested {
            self.streams.record_input(written, &mut self.sink);
            self.send_sink_events();
        }
    }

    /// Closes a pipe; sends a terminal its end-of-file character, twice after an unfinished line,
    /// which the first one only submits.
    pub(super) fn close_input(&mut self) {
        let Some(terminal) = self.streams.terminal() else {
            self.input = None;
            return;
        };
        let code = tcgetattr(terminal).map(|modes| modes.special_codes[SpecialCodeIndex::VEOF]);
        let end = match code {
            Ok(0) | Err(_) => END_OF_TRANSMISSION,
            Ok(code) => code,
        };
        let count = 1 + usize::from(self.canonical_line.is_unfinished());
        self.write_terminal(&[end; 2][..count], InputRecording::AsRequested);
    }
}

/// Writes until the descriptor is full: how much was accepted, and the error if it accepts no more
/// for good.
fn write(input: &OwnedFd, bytes: &[u8]) -> (usize, Result<(), Errno>) {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::write(input, &bytes[written..]) {
            Ok(len) => written += len,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// The foreground process group of a terminal.
pub(super) fn foreground(terminal: &OwnedFd) -> Option<i32> {
    let group = tcgetpgrp(terminal).ok()?;
    Some(group.as_raw_nonzero().get())
}
