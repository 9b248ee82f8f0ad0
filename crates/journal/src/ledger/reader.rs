//! Reading and verification of the ledger.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_model::Timestamp;
use parking_lot::Mutex;
use thiserror::Error;

use super::entry::{LedgerCursor, LedgerPage, LedgerRecord};
use super::hash_chain::{self, LedgerSegment, SegmentContent, SegmentPosition};
use crate::error::ReadError;

/// The most positions at which reads ended that are kept.
const POSITIONS_MAX: usize = 64;
/// How often the chain is followed at most: each time, segments had expired meanwhile.
const WALKS_MAX: usize = 8;

/// Reads the ledger; needs no lock. A read that begins where an earlier one of the same reader, or
/// of a clone, ended parses new entries only.
#[derive(Debug, Clone)]
pub struct LedgerReader {
    dir: PathBuf,
    /// Where reads ended, the newest last.
    positions: Arc<Mutex<VecDeque<SegmentPosition>>>,
}

/// The result of a successful verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedChain {
    /// The number of the first entry kept.
    pub first: u64,
    /// The end of the chain.
    pub end: LedgerCursor,
    /// The hash of the last entry, to be compared with one recorded elsewhere.
    pub hash: String,
}

/// Why the verification failed.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An entry does not follow from the previous one.
    #[error("the chain breaks at entry {seq} in {file}")]
    Broken {
        /// The number of the first entry that does not fit.
        seq: u64,
        /// The segment that holds it.
        file: String,
    },
}

impl LedgerReader {
    /// Opens the ledger in `dir`, which need not exist yet.
    #[must_use]
    pub fn open(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            positions: Arc::default(),
        }
    }

    /// A reader of the same ledger that shares nothing with this one.
    #[must_use]
    pub fn independent(&self) -> Self {
        Self::open(&self.dir)
    }

    /// Reads at most `limit` entries from `from` on, or from the oldest kept. Entries that do not
    /// fit the chain are left out, and their numbers returned once an entry after them can be read.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn read(&self, from: LedgerCursor, limit: usize) -> Result<LedgerPage, ReadError> {
        let segments = hash_chain::list_segments(&self.dir)?;
        let mut page = LedgerPage {
            next: from,
            ..LedgerPage::default()
        };
        let known = self.known_position(from);
        let first = match &known {
            Some(position) => segments.partition_point(|(number, _)| *number < position.segment),
            None => self.first_segment(&segments, from)?,
        };
        let mut last_position = None;
        for (index, (number, path)) in segments.iter().enumerate().skip(first) {
            if page.records.len() >= limit {
                break;
            }
            let start = match &known {
                Some(position) if position.segment == *number => Some(position.clone()),
                _ => hash_chain::first_position(*number, path)?,
            };
            let Some(start) = start else {
                continue;
            };
            if index == 0 {
                // What is before the oldest entry kept has expired.
                page.next = LedgerCursor(page.next.0.max(start.seq));
            }
            // Entries after a damaged line whose numbers were given again do not count.
            let end = match segments.get(index + 1) {
                Some((_, following)) => hash_chain::read_header(following)?,
                None => None,
            };
            let end = end.map_or(u64::MAX, |(header, _)| header.first);
            let has_known_start = index > 0 || start.is_known();
            let read = hash_chain::read_from(path, start, |record| {
                if record.seq >= end {
                    return false;
                }
                if record.seq >= page.next.0 {
                    if !has_known_start && page.records.is_empty() {
                        // One entry is damaged at least; those before it may have expired.
                        page.next = LedgerCursor(page.next.0.max(record.seq.saturating_sub(1)));
                    }
                    page.push(record);
                }
                page.records.len() < limit
            })?;
            last_position = Some(read.position);
        }
        if page.records.is_empty() {
            page.next = from;
        }
        if let Some(position) = last_position.filter(|position| position.seq == page.next.0) {
            self.keep_position(position);
        }
        Ok(page)
    }

    fn known_position(&self, from: LedgerCursor) -> Option<SegmentPosition> {
        let positions = self.positions.lock();
        positions
            .iter()
            .rev()
            .find(|position| position.seq == from.0)
            .cloned()
    }

    fn keep_position(&self, position: SegmentPosition) {
        let mut positions = self.positions.lock();
        positions.retain(|known| known.seq != position.seq);
        positions.push_back(position);
        if positions.len() > POSITIONS_MAX {
            positions.pop_front();
        }
    }

    /// Finds the segment that holds `from`, by the headers alone.
    fn first_segment(
        &self,
        segments: &[(u64, PathBuf)],
        from: LedgerCursor,
    ) -> Result<usize, ReadError> {
        for (index, (_, path)) in segments.iter().enumerate().rev() {
            if hash_chain::read_header(path)?.is_some_and(|(header, _)| header.first <= from.0) {
                return Ok(index);
            }
        }
        Ok(0)
    }

    /// Verifies the whole chain from the first segment kept. A torn tail does not break it.
    ///
    /// # Errors
    /// When an entry was modified, removed or inserted, or the files cannot be read.
    pub fn verify(&self) -> Result<VerifiedChain, VerifyError> {
        let (chain, ()) = self.walk(|| (), |(), _| {})?;
        match chain.broken {
            Some((seq, file)) => Err(VerifyError::Broken { seq, file }),
            None => Ok(chain.verified),
        }
    }

    /// Follows the chain from the first segment kept. `visit` folds its positions into the state
    /// that `start` makes; where segments expire meanwhile, both begin anew.
    pub(super) fn walk<S>(
        &self,
        start: impl Fn() -> S,
        mut visit: impl FnMut(&mut S, ChainPosition<'_>),
    ) -> Result<(Chain, S), ReadError> {
        let mut missing = None;
        for _ in 0..WALKS_MAX {
            let mut state = start();
            match self.walk_once(|position| visit(&mut state, position))? {
                Walk::Chain(chain) => return Ok((chain, state)),
                Walk::Expired(path) => missing = Some(path),
            }
        }
        let file = missing.unwrap_or_default().display().to_string();
        Err(ReadError::io("read", file, io::ErrorKind::NotFound))
    }

    fn walk_once(&self, mut visit: impl FnMut(ChainPosition<'_>)) -> Result<Walk, ReadError> {
        let mut verified: Option<VerifiedChain> = None;
        let mut broken = None;
        let segments = hash_chain::list_segments(&self.dir)?;
        let mut expected_number = None;
        for (index, (number, path)) in segments.iter().enumerate() {
            let break_at = |seq| Some((seq, hash_chain::file_name(*number)));
            let end = verified.as_ref().map_or(0, |verified| verified.end.0);
            let is_last = index + 1 == segments.len();
            let segment = match hash_chain::read_segment(*number, path)? {
                SegmentContent::Entries(segment) => segment,
                SegmentContent::Torn if is_last => break,
                SegmentContent::Missing if self.has_expired(*number)? => {
                    return Ok(Walk::Expired(path.clone()));
                }
                SegmentContent::Missing | SegmentContent::Torn | SegmentContent::DamagedHeader => {
                    broken = break_at(end);
                    break;
                }
            };
            let follows = verified.as_ref().is_none_or(|verified| {
                segment.header.first == verified.end.0 && segment.header.prev == verified.hash
            });
            if !follows || expected_number.is_some_and(|expected| expected != *number) {
                broken = break_at(end);
                break;
            }
            if verified.is_none() {
                visit(ChainPosition::before(&segment));
            }
            segment
                .records
                .iter()
                .for_each(|record| visit(ChainPosition::after(record)));
            expected_number = Some(number + 1);
            let is_complete = segment.is_complete;
            verified = Some(VerifiedChain {
                first: verified.map_or(segment.header.first, |verified| verified.first),
                end: LedgerCursor(segment.end.seq),
                hash: segment.end.hash,
            });
            if !is_complete {
                broken = break_at(segment.header.first + segment.records.len() as u64);
                break;
            }
        }
        let verified = verified.unwrap_or_else(|| {
            visit(ChainPosition::GENESIS);
            VerifiedChain::empty()
        });
        Ok(Walk::Chain(Chain { verified, broken }))
    }

    /// Whether all segments up to this one have been removed, as expiry does.
    fn has_expired(&self, number: u64) -> Result<bool, ReadError> {
        let segments = hash_chain::list_segments(&self.dir)?;
        Ok(segments.first().is_some_and(|(oldest, _)| *oldest > number))
    }
}

impl LedgerPage {
    fn push(&mut self, record: LedgerRecord) {
        if record.seq > self.next.0 {
            self.damaged.push(self.next.0..record.seq);
        }
        self.next = LedgerCursor(record.seq + 1);
        self.records.push(record);
    }
}

impl VerifiedChain {
    fn empty() -> Self {
        Self {
            first: 0,
            end: LedgerCursor(0),
            hash: hash_chain::GENESIS.to_owned(),
        }
    }
}

/// The result of following the chain once.
enum Walk {
    /// To its end, or to where it breaks.
    Chain(Chain),
    /// This segment expired before it was read.
    Expired(PathBuf),
}

/// One position in the chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainPosition<'a> {
    /// The number of entries before it.
    pub(super) count: u64,
    /// The hash of the last of them.
    pub(super) hash: &'a str,
    /// When that was made; none before the first entry kept.
    pub(super) at: Option<Timestamp>,
}

impl<'a> ChainPosition<'a> {
    const GENESIS: Self = Self {
        count: 0,
        hash: hash_chain::GENESIS,
        at: None,
    };

    fn before(segment: &'a LedgerSegment) -> Self {
        Self {
            count: segment.header.first,
            hash: &segment.header.prev,
            at: None,
        }
    }

    fn after(record: &'a LedgerRecord) -> Self {
        Self {
            count: record.seq + 1,
            hash: &record.hash,
            at: Some(record.entry.at),
        }
    }
}

/// The chain, as far as its entries fit.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) verified: VerifiedChain,
    /// The number of the first entry that does not fit, and the segment that holds it.
    pub(super) broken: Option<(u64, String)>,
}
