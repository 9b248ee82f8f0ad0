//! What is typed, and its end.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::termios::{SpecialCodeIndex, tcgetattr, tcgetpgrp};

use super::Run;
use crate::place::IdempotentInput;
use crate::proto::FromShim;

/// Ctrl-D, where a terminal names no other character for the end of its input.
const END_OF_TRANSMISSION: u8 = 4;

impl Run<'_> {
    /// Writes what the command takes now, and says how much that was.
    pub(super) fn write_input(&mut self, bytes: &[u8]) {
        let taken = self.put_in(bytes);
        self.tell_taken(taken);
    }

    /// As [`Run::write_input`], but for what of it went in before. Without bytes it is only
    /// told how much that is.
    pub(super) fn write_once(&mut self, input: IdempotentInput, from: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            let input = self.inputs.get(input.id);
            self.link.send(&FromShim::InputProgress { input }, None);
            return;
        }
        let Some(before) = self.inputs.taken_before(input, from, bytes.len()) else {
            return self.tell_taken(0);
        };
        let taken = self.put_in(&bytes[before..]);
        self.inputs.took(input.id, taken as u64);
        self.tell_taken(before + taken);
    }

    fn tell_taken(&mut self, taken: usize) {
        let len = taken as u64;
        self.link.send(&FromShim::InputTaken { len }, None);
    }

    fn put_in(&mut self, bytes: &[u8]) -> usize {
        if let Some(end) = self.marks.input(self.sink.end(), Instant::now()) {
            self.link.send(&FromShim::Output { end }, None);
        }
        if self.streams.terminal().is_some() {
            self.write_terminal(bytes)
        } else {
            self.write_pipe(bytes)
        }
    }

    fn write_pipe(&mut self, bytes: &[u8]) -> usize {
        let Some(input) = &self.input else {
            return 0;
        };
        let (taken, outcome) = write(input, bytes);
        if outcome.is_err() {
            self.input = None;
        }
        taken
    }

    /// A terminal that nobody holds now takes nothing, and may be opened again.
    fn write_terminal(&mut self, bytes: &[u8]) -> usize {
        let Some(terminal) = self.streams.terminal() else {
            return 0;
        };
        let modes = tcgetattr(terminal).ok();
        let room = modes
            .as_ref()
            .map_or(bytes.len(), |modes| self.line.room(modes, bytes));
        let (taken, _gone) = write(terminal, &bytes[..room]);
        if let Some(modes) = &modes {
            self.line.wrote(modes, &bytes[..taken]);
        }
        taken
    }

    /// The end of a pipe; for a terminal, its end-of-file character: twice after an unfinished
    /// line, which the first one hands over.
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
        let count = 1 + usize::from(self.line.is_unfinished());
        self.write_terminal(&[end; 2][..count]);
    }
}

/// Writes until it is full: how much was taken, and why it takes no more for good.
fn write(input: &OwnedFd, bytes: &[u8]) -> (usize, Result<(), Errno>) {
    let mut taken = 0;
    while taken < bytes.len() {
        match rustix::io::write(input, &bytes[taken..]) {
            Ok(len) => taken += len,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return (taken, Err(error)),
        }
    }
    (taken, Ok(()))
}

/// The process group in front of a terminal.
pub(super) fn foreground(terminal: &OwnedFd) -> Option<i32> {
    let group = tcgetpgrp(terminal).ok()?;
    Some(group.as_raw_nonzero().get())
}
