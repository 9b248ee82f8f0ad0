//! The evidence in the output so far.

use std::time::Duration;

use ostler_model::{ReadyRule, ServiceKind, StreamName};

use super::limits::{EXCERPT_CHARS, PRINTED_MAX};
use super::line_splitter::{LinePiece, LineSplitter};
use super::log_patterns::{LineFailure, LineMeaning, LogPatterns};
use super::printed_address::{AddressWeight, PrintedAddress};

/// What lines are analysed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadMode {
    /// Everything: the service is not ready.
    Everything,
    Addresses,
    /// The last line.
    LastLine,
}

/// A line that was recorded as evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotedLine {
    pub(super) line: String,
    /// When it came.
    pub(super) at: Duration,
}

/// Analyses the output of one attempt.
#[derive(Debug, Clone)]
pub(super) struct OutputAnalyzer {
    streams: [LineSplitter; 4],
    evidence: OutputEvidence,
}

/// The evidence in the output.
#[derive(Debug, Clone)]
pub(super) struct OutputEvidence {
    expressions: LogPatterns,
    kind: ServiceKind,
    /// Addresses, in the order they were printed.
    pub(super) addresses: Vec<PrintedAddress>,
    /// When the first was.
    pub(super) first_address_at: Duration,
    /// A line that reports ready.
    pub(super) ready: Option<NotedLine>,
    /// A line of an idle watcher.
    pub(super) idle: Option<NotedLine>,
    /// A line that reports a fatal failure.
    pub(super) fatal: Option<NotedLine>,
    /// A port was in use, and no line says whether the program continues.
    pub(super) in_use: Option<NotedLine>,
    /// A port was in use, whatever the outcome.
    pub(super) conflict: Option<String>,
    /// An error that may end the program.
    pub(super) suspect: Option<NotedLine>,
    /// When a watcher restarted its program.
    pub(super) restarted_at: Option<Duration>,
    /// The last line.
    pub(super) last_line: String,
    /// When output arrived last.
    pub(super) output_at: Option<Duration>,
}

impl OutputAnalyzer {
    /// An analyzer without evidence.
    pub(super) fn new(rule: &ReadyRule) -> Self {
        Self {
            streams: Default::default(),
            evidence: OutputEvidence {
                expressions: LogPatterns::new(rule),
                kind: rule.kind,
                addresses: Vec::new(),
                first_address_at: Duration::ZERO,
                ready: None,
                idle: None,
                fatal: None,
                in_use: None,
                conflict: None,
                suspect: None,
                restarted_at: None,
                last_line: String::new(),
                output_at: None,
            },
        }
    }

    /// The evidence so far.
    pub(super) fn evidence(&self) -> &OutputEvidence {
        &self.evidence
    }

    /// As [`OutputAnalyzer::evidence`], mutable.
    pub(super) fn evidence_mut(&mut self) -> &mut OutputEvidence {
        &mut self.evidence
    }

    /// Analyses a chunk of output.
    pub(super) fn push(&mut self, stream: StreamName, bytes: &[u8], at: Duration, mode: ReadMode) {
        let lines = match stream {
            StreamName::Stdout => &mut self.streams[0],
            StreamName::Stderr => &mut self.streams[1],
            StreamName::Pty => &mut self.streams[2],
            // Its input is not output.
            StreamName::Stdin => return,
        };
        self.evidence.output_at = Some(at);
        let evidence = &mut self.evidence;
        lines.push(bytes, at, |line| evidence.read_line(line, at, mode));
    }

    /// Analyses unfinished lines that have not changed for long enough.
    pub(super) fn flush_partial(&mut self, at: Duration, mode: ReadMode) {
        let evidence = &mut self.evidence;
        for lines in &mut self.streams {
            lines.flush_partial(at, |line| evidence.read_line(line, at, mode));
        }
    }

    /// When unfinished lines are due.
    pub(super) fn due(&self) -> impl Iterator<Item = Duration> {
        self.streams.iter().filter_map(LineSplitter::due)
    }
}

impl OutputEvidence {
    /// Whether the rule has ready expressions.
    pub(super) fn has_ready(&self) -> bool {
        self.expressions.has_ready()
    }

    /// The first of them.
    pub(super) fn first_ready(&self) -> Option<&str> {
        self.expressions.first_ready()
    }

    fn read_line(&mut self, piece: LinePiece<'_>, at: Duration, mode: ReadMode) {
        let line = match piece {
            LinePiece::Beginning(line) => line,
            LinePiece::Later(part) => return self.read_later_part(part, at, mode),
        };
        match mode {
            ReadMode::Everything => {
                let meaning = self.expressions.analyze(line);
                self.apply(meaning, line, at);
            }
            ReadMode::Addresses => {
                let addresses = self.expressions.addresses(line);
                self.add_addresses(addresses, at);
            }
            ReadMode::LastLine => {}
        }
        self.last_line.clear();
        self.last_line.extend(line.chars().take(EXCERPT_CHARS));
    }

    /// Analyses a later part of a long line: what is excerpted of the line is its beginning.
    fn read_later_part(&mut self, part: &str, at: Duration, mode: ReadMode) {
        match mode {
            ReadMode::Everything => {
                let meaning = self.expressions.analyze_later_part(part);
                self.apply(meaning, part, at);
            }
            ReadMode::Addresses | ReadMode::LastLine => {}
        }
    }

    fn apply(&mut self, meaning: LineMeaning, line: &str, at: Duration) {
        let note = || NotedLine {
            line: excerpt(line),
            at,
        };
        match meaning.failure {
            Some(LineFailure::Dead) => self.mark_dead(note()),
            Some(LineFailure::Ended) if self.kind == ServiceKind::Server => self.mark_dead(note()),
            Some(LineFailure::InUse) => {
                self.in_use.get_or_insert_with(note);
                self.conflict = Some(excerpt(line));
            }
            Some(LineFailure::Moved) => {
                self.conflict = Some(excerpt(line));
                self.mark_suspect(note(), true);
            }
            Some(LineFailure::Fatal) => self.mark_suspect(note(), true),
            Some(LineFailure::Error) => self.mark_suspect(note(), false),
            Some(LineFailure::Ended) | None => {}
        }
        if meaning.ready || meaning.idle {
            self.suspect = None;
        }
        if meaning.ready {
            self.ready.get_or_insert_with(note);
        }
        if meaning.idle {
            self.idle.get_or_insert_with(note);
        }
        if meaning.restart {
            self.restarted_at = Some(at);
            self.suspect = None;
        }
        self.add_addresses(meaning.addresses, at);
    }

    /// Invalidates all evidence so far.
    fn mark_dead(&mut self, line: NotedLine) {
        self.ready = None;
        self.idle = None;
        self.restarted_at = None;
        self.in_use = None;
        self.fatal = Some(line);
    }

    /// A program that only runs may print errors; only fatal ones count then, and a watcher's
    /// errors belong to its work.
    fn mark_suspect(&mut self, line: NotedLine, grave: bool) {
        let counts = match self.kind {
            ServiceKind::Server | ServiceKind::Multi => true,
            ServiceKind::Unknown | ServiceKind::Socket => grave,
            ServiceKind::Watcher => false,
        };
        if counts {
            self.suspect.get_or_insert(line);
        }
    }

    fn add_addresses(&mut self, addresses: Vec<PrintedAddress>, at: Duration) {
        for address in addresses {
            if !self.addresses.contains(&address) && self.addresses.len() < PRINTED_MAX {
                let is_first = |least: AddressWeight| {
                    address.weight <= least && self.addresses.iter().all(|one| one.weight > least)
                };
                if is_first(AddressWeight::Url) || is_first(AddressWeight::Phrase) {
                    self.first_address_at = at;
                }
                self.addresses.push(address);
            }
        }
    }
}

/// A line, truncated for evidence and details.
pub(super) fn excerpt(line: &str) -> String {
    line.chars().take(EXCERPT_CHARS).collect()
}
