//! One execution's screen, and how it catches up with its journal.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use ostler_journal::{ByteQuery, Journal};
use ostler_model::{Cursor, TermSize};
use ostler_terminal::Screen;

use super::checkpoint_store;
use crate::error::Error;
use crate::execution::{TerminalChange, TerminalChangeKind, Timeline};

/// A screen, parsed up to an offset of the journal.
#[derive(Debug)]
pub(crate) struct CachedScreen {
    dir: PathBuf,
    nonce: Option<String>,
    pub(super) screen: Screen,
    /// Terminal changes beyond its offset, and the number of the first one not taken over yet.
    pending: VecDeque<TerminalChange>,
    next_index: u64,
    /// The offset of the checkpoint on disk.
    checkpoint_offset: Option<u64>,
}

/// The initial state of a terminal.
#[derive(Debug, Clone)]
pub(super) struct ScreenOrigin {
    pub(super) dir: PathBuf,
    pub(super) size: TermSize,
    pub(super) nonce: Option<String>,
}

impl CachedScreen {
    /// The screen of the newest checkpoint, or a blank one.
    pub(super) fn open(origin: ScreenOrigin, timeline: &Timeline) -> Result<Self, Error> {
        let ScreenOrigin { dir, size, nonce } = origin;
        let (changes, next) = timeline.all(&dir)?;
        let restored = restore(&dir, nonce.as_deref());
        let mut cached = Self {
            checkpoint_offset: restored.as_ref().map(Screen::offset),
            screen: restored.unwrap_or_else(|| Screen::new(size, nonce.as_deref())),
            dir,
            nonce,
            pending: changes.into(),
            next_index: next,
        };
        cached.apply_skipped();
        Ok(cached)
    }

    /// Takes over the terminal changes since the last call.
    pub(super) fn sync_timeline(&mut self, timeline: &Timeline) {
        let (new, next) = timeline.since(self.next_index);
        self.pending.extend(new);
        self.next_index = next;
    }

    /// The offset up to which it is parsed.
    pub(super) fn offset(&self) -> u64 {
        self.screen.offset()
    }

    /// Parses about this many bytes towards `end`; false when it is there or nothing more can be
    /// read.
    pub(super) fn advance(
        &mut self,
        journal: &Journal,
        end: u64,
        bytes: u64,
    ) -> Result<bool, Error> {
        self.apply_due(end);
        let at = self.offset();
        if at >= end {
            return Ok(false);
        }
        let page = journal.read(&ByteQuery {
            until: Some(end),
            max_bytes: bytes,
            joined: true,
            ..ByteQuery::starting_at(Cursor {
                offset: at,
                event: 0,
            })
        })?;
        if let Some(gap) = page.gap {
            self.skip_to(gap.to);
            return Ok(true);
        }
        for chunk in &page.chunks {
            self.skip_gap(chunk.offset);
            self.feed(&chunk.bytes, end);
        }
        self.skip_gap(page.next.offset);
        Ok(self.offset() > at)
    }

    /// Skips bytes that are missing from the output.
    fn skip_gap(&mut self, offset: u64) {
        if offset > self.offset() {
            self.screen.skip_to(offset);
        }
    }

    /// Parses bytes, and applies the terminal changes between them.
    fn feed(&mut self, mut bytes: &[u8], end: u64) {
        while !bytes.is_empty() {
            self.apply_due(end);
            let next_change = self.pending.front().map_or(u64::MAX, |turn| turn.offset);
            let before = next_change.saturating_sub(self.offset());
            let len = usize::try_from(before).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(len.clamp(1, bytes.len()));
            self.screen.feed(now);
            bytes = later;
        }
    }

    /// Continues at `offset`, from a checkpoint at or before it where there is one.
    pub(super) fn skip_to(&mut self, offset: u64) {
        let checkpoint = restore(&self.dir, self.nonce.as_deref());
        if let Some(checkpoint) = checkpoint.filter(|it| it.offset() > self.offset()) {
            self.checkpoint_offset = Some(checkpoint.offset());
            self.screen = checkpoint;
        }
        if self.offset() < offset {
            self.screen.skip_to(offset);
        }
        self.apply_skipped();
    }

    /// After a skip, only the last size counts.
    fn apply_skipped(&mut self) {
        let at = self.offset();
        let mut last = None;
        while let Some(change) = self.pending.pop_front_if(|turn| turn.offset < at) {
            if let TerminalChangeKind::Resized(size) = change.kind {
                last = Some(size);
            }
        }
        if let Some(size) = last {
            self.resize(size);
        }
    }

    /// Applies the terminal changes at its offset.
    fn apply_due(&mut self, end: u64) {
        while let Some(change) = self.pending.front().copied() {
            let at = self.offset();
            if change.offset > at {
                return;
            }
            match change.kind {
                TerminalChangeKind::Resized(size) => self.resize(size),
                // Until output follows, the last screen of the attempt stays.
                TerminalChangeKind::AttemptEnded if end <= at && self.pending.len() == 1 => return,
                TerminalChangeKind::AttemptEnded => self.reset_terminal(),
            }
            self.pending.pop_front();
        }
    }

    fn resize(&mut self, size: TermSize) {
        if self.screen.size() != size.clamped() {
            self.screen.resize(size);
        }
    }

    /// Replaces the terminal with a new one of the same size, at the same offset.
    fn reset_terminal(&mut self) {
        let nonce = self.nonce.as_deref();
        self.screen = Screen::starting_at(self.offset(), self.screen.size(), nonce);
    }

    /// How many bytes the checkpoint on disk is behind.
    pub(super) fn unstored_bytes(&self) -> u64 {
        self.offset() - self.checkpoint_offset.unwrap_or(0).min(self.offset())
    }

    /// Stores a checkpoint, unless an identical one exists.
    pub(super) fn store(&mut self) {
        if self.checkpoint_offset == Some(self.offset()) {
            return;
        }
        match checkpoint_store::write(&self.dir, &self.screen.checkpoint()) {
            Ok(()) => self.checkpoint_offset = Some(self.offset()),
            // An execution that was removed meanwhile needs none.
            Err(error) => {
                tracing::debug!(dir = %self.dir.display(), %error, "no checkpoint");
            }
        }
    }
}

fn restore(dir: &Path, nonce: Option<&str>) -> Option<Screen> {
    let checkpoint = checkpoint_store::read(dir)?;
    let restored = Screen::restore(&checkpoint, nonce);
    restored
        .inspect_err(|error| tracing::debug!(dir = %dir.display(), %error, "no checkpoint"))
        .ok()
}
