//! One execution's screen, and how it is brought up to its journal.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use ostler_journal::{ByteQuery, Journal};
use ostler_model::{Cursor, TermSize};
use ostler_terminal::Screen;

use super::store;
use super::turns::{Turn, Turns, What};
use crate::error::Error;

/// A screen, parsed up to where it stands.
#[derive(Debug)]
pub(crate) struct Seat {
    dir: PathBuf,
    nonce: Option<String>,
    pub(super) screen: Screen,
    /// Turns that lie ahead of it, and the number of the first that was not taken over yet.
    ahead: VecDeque<Turn>,
    next: u64,
    /// Where the checkpoint on disk stands.
    stored: Option<u64>,
}

/// What a terminal began with.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    pub(super) dir: PathBuf,
    pub(super) size: TermSize,
    pub(super) nonce: Option<String>,
}

impl Seat {
    /// The screen of the newest checkpoint, or a blank one.
    pub(super) fn open(beginning: Beginning, turns: &Turns) -> Result<Self, Error> {
        let Beginning { dir, size, nonce } = beginning;
        let (all, next) = turns.all(&dir)?;
        let restored = restore(&dir, nonce.as_deref());
        let mut seat = Self {
            stored: restored.as_ref().map(Screen::offset),
            screen: restored.unwrap_or_else(|| Screen::new(size, nonce.as_deref())),
            dir,
            nonce,
            ahead: all.into(),
            next,
        };
        seat.pass_by();
        Ok(seat)
    }

    /// Takes over turns that happened meanwhile.
    pub(super) fn hear(&mut self, turns: &Turns) {
        let (new, next) = turns.since(self.next);
        self.ahead.extend(new);
        self.next = next;
    }

    /// Where it stands.
    pub(super) fn offset(&self) -> u64 {
        self.screen.offset()
    }

    /// Brings it nearer to `end`, by about so many bytes; false when it is there or nothing
    /// more can be read.
    pub(super) fn advance(
        &mut self,
        journal: &Journal,
        end: u64,
        bytes: u64,
    ) -> Result<bool, Error> {
        self.turn(end);
        let at = self.offset();
        if at >= end {
            return Ok(false);
        }
        let page = journal.read(&ByteQuery {
            until: Some(end),
            max_bytes: bytes,
            ..ByteQuery::from(Cursor {
                offset: at,
                event: 0,
            })
        })?;
        if let Some(gap) = page.gap {
            self.jump(gap.to);
            return Ok(true);
        }
        for chunk in &page.chunks {
            self.pass_over(chunk.offset);
            self.take(&chunk.bytes, end);
        }
        self.pass_over(page.next.offset);
        Ok(self.offset() > at)
    }

    /// Bytes that are no output of the terminal.
    fn pass_over(&mut self, offset: u64) {
        if offset > self.offset() {
            self.screen.skip_to(offset);
        }
    }

    /// Takes bytes in, and turns between them.
    fn take(&mut self, mut bytes: &[u8], end: u64) {
        while !bytes.is_empty() {
            self.turn(end);
            let next = self.ahead.front().map_or(u64::MAX, |turn| turn.offset);
            let before = next.saturating_sub(self.offset());
            let len = usize::try_from(before).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(len.clamp(1, bytes.len()));
            self.screen.feed(now);
            bytes = later;
        }
    }

    /// Goes on at `offset`, by a checkpoint that reaches so far where there is one.
    pub(super) fn jump(&mut self, offset: u64) {
        let stored = restore(&self.dir, self.nonce.as_deref());
        if let Some(stored) = stored.filter(|it| it.offset() > self.offset()) {
            self.stored = Some(stored.offset());
            self.screen = stored;
        }
        if self.offset() < offset {
            self.screen.skip_to(offset);
        }
        self.pass_by();
    }

    /// Behind a jump: only the last size counts.
    fn pass_by(&mut self) {
        let at = self.offset();
        let mut last = None;
        while let Some(turn) = self.ahead.pop_front_if(|turn| turn.offset < at) {
            if let What::Resized(size) = turn.what {
                last = Some(size);
            }
        }
        if let Some(size) = last {
            self.resize(size);
        }
    }

    /// Carries out the turns that are due where it stands.
    fn turn(&mut self, end: u64) {
        while let Some(turn) = self.ahead.front().copied() {
            let at = self.offset();
            if turn.offset > at {
                return;
            }
            match turn.what {
                What::Resized(size) => self.resize(size),
                // Until something follows, the last screen of the attempt stays.
                What::Ended if end <= at && self.ahead.len() == 1 => return,
                What::Ended => self.begin_anew(),
            }
            self.ahead.pop_front();
        }
    }

    fn resize(&mut self, size: TermSize) {
        if self.screen.size() != size.fitting() {
            self.screen.resize(size);
        }
    }

    /// A new terminal of the same size, at the same place.
    fn begin_anew(&mut self) {
        let nonce = self.nonce.as_deref();
        self.screen = Screen::starting_at(self.offset(), self.screen.size(), nonce);
    }

    /// How far the checkpoint on disk is behind.
    pub(super) fn unstored_bytes(&self) -> u64 {
        self.offset() - self.stored.unwrap_or(0).min(self.offset())
    }

    /// Leaves a checkpoint, unless there is the same already.
    pub(super) fn store(&mut self) {
        if self.stored == Some(self.offset()) {
            return;
        }
        match store::write(&self.dir, &self.screen.checkpoint()) {
            Ok(()) => self.stored = Some(self.offset()),
            // An execution that was removed meanwhile needs none.
            Err(error) => {
                tracing::debug!(dir = %self.dir.display(), %error, "no checkpoint");
            }
        }
    }
}

fn restore(dir: &Path, nonce: Option<&str>) -> Option<Screen> {
    let checkpoint = store::read(dir)?;
    let restored = Screen::restore(&checkpoint, nonce);
    restored
        .inspect_err(|error| tracing::debug!(dir = %dir.display(), %error, "no checkpoint"))
        .ok()
}
