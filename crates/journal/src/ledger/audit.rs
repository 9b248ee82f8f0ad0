//! Verification of the ledger against its heads.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use ostler_model::Timestamp;
use serde::Serialize;

use super::heads::{self, HeadKey, Heads, LedgerHead};
use super::reader::LedgerReader;
use crate::error::ReadError;

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// The number of the oldest entry that is kept.
    pub first: u64,
    /// When the oldest entry that is kept was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// The number of entries so far, expired ones included; those that form a chain.
    pub count: u64,
    /// The hash of the last of them, in lowercase hexadecimal.
    pub hash: String,
    /// The number of heads that are valid.
    pub heads: u64,
    /// How many entries, expired ones included, the newest valid head covers.
    pub covered: u64,
    /// What was changed; empty where nothing was found.
    pub findings: Vec<AuditFinding>,
}

/// One change that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AuditFinding {
    /// An entry does not follow from the previous one: it, or an entry next to it, was edited,
    /// inserted, removed or moved.
    Broken {
        /// The number of the first entry that does not fit.
        seq: u64,
        /// The segment that holds it.
        file: String,
    },
    /// A head covers entries that are not there: they were cut off.
    Cut {
        /// The entries that the head covers.
        head: u64,
        /// The entries that there are.
        count: u64,
    },
    /// A head covers other entries than there are: they were replaced.
    Replaced {
        /// The entries that the head covers.
        head: u64,
    },
    /// A head was changed, moved, or signed with another key, or the one before it was removed.
    Head {
        /// The number of its line, from 1.
        line: u64,
    },
    /// The first head covers entries after which heads should have been written before it: the
    /// earlier ones were removed, or no daemon could write them.
    LateHeads {
        /// The entries that the first head covers.
        head: u64,
    },
    /// There is no file of heads, or no head in it.
    NoHeads,
    /// The key of the heads is missing: they were not checked.
    NoKey,
}

impl fmt::Display for AuditFinding {
    /// One clause for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken { seq, file } => write!(
                f,
                "entry {seq} in {file} does not follow from the one before: entries were edited, \
                 inserted, removed or moved there"
            ),
            Self::Cut { head, count } => write!(
                f,
                "a head covers {head} entries, and there are {count}: the others were cut off"
            ),
            Self::Replaced { head } => write!(
                f,
                "the {head} entries that a head covers are not those that there are: they were \
                 replaced"
            ),
            Self::Head { line } => write!(
                f,
                "line {line} of the heads was changed, moved or signed with another key, or the \
                 line before it was removed"
            ),
            Self::LateHeads { head } => write!(
                f,
                "the heads begin after {head} entries: earlier ones were removed, or no daemon \
                 could write them"
            ),
            Self::NoHeads => f.write_str(
                "there are no heads: the file was removed, or no daemon \
                 could write it",
            ),
            Self::NoKey => f.write_str("the key of the heads is missing: they were not checked"),
        }
    }
}

impl LedgerReader {
    /// Verifies the chain from the first entry kept, and the heads in the file `heads`. Entries
    /// that a daemon appends meanwhile are no finding.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn audit(&self, heads: &Path, key: Option<&HeadKey>) -> Result<AuditReport, ReadError> {
        // Before the entries: every head that is read covers entries that are there.
        let recorded = match key {
            Some(key) => heads::read_heads(heads, key)?,
            None => None,
        };
        let recorded_heads = recorded.iter().flat_map(|it| &it.valid);
        let hashes: HashMap<u64, Option<String>> =
            recorded_heads.map(|head| (head.count, None)).collect();
        let heads_begin = recorded.as_ref().and_then(first_head);
        let start = || (hashes.clone(), None, None);
        let (chain, (covered_hashes, oldest, before_heads)) =
            self.walk(start, |(hashes, oldest, before_heads), position| {
                *oldest = oldest.or(position.at);
                if heads_begin.is_some_and(|first| position.count < first) {
                    *before_heads = position.at.max(*before_heads);
                }
                if let Some(hash) = hashes.get_mut(&position.count) {
                    *hash = Some(position.hash.to_owned());
                }
            })?;
        let mut report = AuditReport {
            first: chain.verified.first,
            oldest,
            count: chain.verified.end.0,
            hash: chain.verified.hash,
            heads: 0,
            covered: 0,
            findings: Vec::new(),
        };
        let is_broken = chain.broken.is_some();
        let broken = |(seq, file)| AuditFinding::Broken { seq, file };
        report.findings.extend(chain.broken.map(broken));
        let Some(Heads {
            valid,
            invalid_lines,
        }) = recorded
        else {
            let missing = key.map_or(AuditFinding::NoKey, |_| AuditFinding::NoHeads);
            report.findings.push(missing);
            return Ok(report);
        };
        let invalid = invalid_lines.into_iter();
        report
            .findings
            .extend(invalid.map(|line| AuditFinding::Head { line }));
        if valid.is_empty() {
            report.findings.push(AuditFinding::NoHeads);
        }
        let key_written_at = key.and_then(HeadKey::written_at);
        if let Some(head) = heads_begin.filter(|_| is_late(before_heads, key_written_at)) {
            report.findings.push(AuditFinding::LateHeads { head });
        }
        report.heads = valid.len() as u64;
        for head in valid {
            let found = covered_hashes.get(&head.count).and_then(Option::as_deref);
            match compare(&head, found, &report) {
                // What follows a break is not known.
                HeadMatch::Cut if is_broken => {}
                HeadMatch::Expired => {}
                HeadMatch::Covers => report.covered = report.covered.max(head.count),
                HeadMatch::Cut => report.findings.push(AuditFinding::Cut {
                    head: head.count,
                    count: report.count,
                }),
                HeadMatch::Replaced => {
                    let finding = AuditFinding::Replaced { head: head.count };
                    report.findings.push(finding);
                }
            }
        }
        Ok(report)
    }
}

/// The entries that the first head covers; none where lines of the heads are invalid, which is a
/// finding of its own.
fn first_head(heads: &Heads) -> Option<u64> {
    let first = heads.valid.first()?;
    heads.invalid_lines.is_empty().then_some(first.count)
}

/// Whether heads should have been written before the first one. One is due with each entry until
/// there is one, so all entries before the last one it covers are from before there was a key, as
/// those of versions that had no heads are.
fn is_late(before_first_head: Option<Timestamp>, key_written_at: Option<Timestamp>) -> bool {
    let times = before_first_head.zip(key_written_at);
    times.is_some_and(|(entry, key)| entry > key)
}

/// What a head says of the entries that there are.
enum HeadMatch {
    /// It covers them.
    Covers,
    /// Those that it covers have expired.
    Expired,
    /// It covers more.
    Cut,
    /// It covers others.
    Replaced,
}

fn compare(head: &LedgerHead, found: Option<&str>, report: &AuditReport) -> HeadMatch {
    match found {
        Some(hash) if hash == head.hash => HeadMatch::Covers,
        Some(_) => HeadMatch::Replaced,
        None if head.count < report.first => HeadMatch::Expired,
        None => HeadMatch::Cut,
    }
}
