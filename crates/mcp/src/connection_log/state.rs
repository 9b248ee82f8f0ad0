//! The unfinished part of a connection: a fold of its log's records. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::lines::{InputLine, InputSplitter};
use super::record::{LineFlags, LogRecord, OutputKind, StartBinding};

/// A line that is not answered yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PendingLine {
    pub(crate) text: Vec<u8>,
    /// Whether the line was too long, and this is its beginning.
    pub(crate) too_long: bool,
    /// The executions its requests start.
    pub(crate) bindings: Vec<StartBinding>,
    /// Members whose call must not be repeated.
    pub(crate) dispatched: BTreeSet<u32>,
    /// Whether the client was sent the acknowledgement of its subscription.
    pub(crate) acknowledged: bool,
}

/// An answered line that stays in effect for the rest of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StandingLine {
    pub(crate) line: u64,
    pub(crate) text: Vec<u8>,
    kind: StandingKind,
}

/// What a standing line sets; the last one of each kind counts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StandingKind {
    Handshake,
    LogLevel,
    Subscription(String),
}

/// The folded state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConnectionState {
    next_line: u64,
    splitter: InputSplitter,
    unanswered: BTreeMap<u64, PendingLine>,
    standing: Vec<StandingLine>,
    generation: u32,
}

impl ConnectionState {
    /// Applies one record; returns the lines completed by it.
    pub(crate) fn apply(&mut self, record: &LogRecord<'_>) -> Vec<(u64, InputLine)> {
        match record {
            LogRecord::Snapshot {
                next_line,
                generation,
                skipping,
                partial,
            } => {
                *self = Self {
                    next_line: *next_line,
                    generation: *generation,
                    splitter: InputSplitter {
                        partial: partial.to_vec(),
                        is_skipping: *skipping,
                    },
                    ..Self::default()
                };
            }
            LogRecord::Input(bytes) => return self.add_input(bytes),
            LogRecord::Line { line, flags, text } => self.restore_line(*line, *flags, text),
            LogRecord::Bound { line, binding } => {
                if let Some(pending) = self.unanswered.get_mut(line) {
                    pending.bindings.push(*binding);
                }
            }
            LogRecord::Dispatched { line, member } => {
                if let Some(pending) = self.unanswered.get_mut(line) {
                    pending.dispatched.insert(*member);
                }
            }
            LogRecord::Output { output, .. } => self.add_output(*output),
            LogRecord::Attached => self.generation = self.generation.saturating_add(1),
        }
        Vec::new()
    }

    fn add_input(&mut self, bytes: &[u8]) -> Vec<(u64, InputLine)> {
        let mut lines = Vec::new();
        for line in self.splitter.push(bytes) {
            let (text, too_long) = match &line {
                InputLine::Whole(text) => (text.clone(), false),
                InputLine::TooLong(text) => (text.clone(), true),
            };
            let pending = PendingLine {
                text,
                too_long,
                ..PendingLine::default()
            };
            self.unanswered.insert(self.next_line, pending);
            lines.push((self.next_line, line));
            self.next_line = self.next_line.saturating_add(1);
        }
        lines
    }

    fn restore_line(&mut self, line: u64, flags: LineFlags, text: &[u8]) {
        if flags.standing {
            self.set_standing(line, text.to_vec());
            return;
        }
        let pending = PendingLine {
            text: text.to_vec(),
            too_long: flags.too_long,
            acknowledged: flags.acknowledged,
            ..PendingLine::default()
        };
        self.unanswered.insert(line, pending);
    }

    fn add_output(&mut self, output: OutputKind) {
        match output {
            OutputKind::Message => {}
            OutputKind::Answer { line, standing } => {
                if let Some(pending) = self.unanswered.remove(&line)
                    && standing
                {
                    self.set_standing(line, pending.text);
                }
            }
            OutputKind::Acknowledgement { line } => {
                if let Some(pending) = self.unanswered.get_mut(&line) {
                    pending.acknowledged = true;
                }
            }
        }
    }

    fn set_standing(&mut self, line: u64, text: Vec<u8>) {
        let Some((kind, is_set)) = parse_standing(&text) else {
            return;
        };
        self.standing.retain(|it| it.kind != kind);
        if is_set {
            self.standing.push(StandingLine { line, text, kind });
        }
    }

    /// Marks a line as needing no answer any more.
    pub(crate) fn mark_settled(&mut self, line: u64) {
        self.unanswered.remove(&line);
    }

    /// The lines without an answer.
    pub(crate) const fn unanswered(&self) -> &BTreeMap<u64, PendingLine> {
        &self.unanswered
    }

    /// The lines in effect for the rest of the connection, the handshake first.
    pub(crate) fn standing(&self) -> &[StandingLine] {
        &self.standing
    }

    /// The resources subscribed to.
    pub(crate) fn subscriptions(&self) -> impl Iterator<Item = &str> {
        self.standing.iter().filter_map(|it| match &it.kind {
            StandingKind::Subscription(uri) => Some(uri.as_str()),
            StandingKind::Handshake | StandingKind::LogLevel => None,
        })
    }

    /// How many daemons had the connection before this one.
    pub(crate) const fn generation(&self) -> u32 {
        self.generation
    }

    /// Records that fold to the same state.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        let first = LogRecord::Snapshot {
            next_line: self.next_line,
            generation: self.generation,
            skipping: self.splitter.is_skipping,
            partial: &self.splitter.partial,
        };
        let mut bytes = first.encode();
        for StandingLine { line, text, .. } in &self.standing {
            let flags = LineFlags {
                standing: true,
                ..LineFlags::default()
            };
            let line = *line;
            bytes.extend(LogRecord::Line { line, flags, text }.encode());
        }
        for (&line, pending) in &self.unanswered {
            let flags = LineFlags {
                standing: false,
                acknowledged: pending.acknowledged,
                too_long: pending.too_long,
            };
            let text = &pending.text;
            bytes.extend(LogRecord::Line { line, flags, text }.encode());
            for &binding in &pending.bindings {
                bytes.extend(LogRecord::Bound { line, binding }.encode());
            }
            for &member in &pending.dispatched {
                bytes.extend(LogRecord::Dispatched { line, member }.encode());
            }
        }
        bytes
    }
}

#[derive(Deserialize)]
struct StandingRequest {
    method: String,
    #[serde(default)]
    params: StandingParams,
}

#[derive(Deserialize, Default)]
struct StandingParams {
    #[serde(default)]
    uri: String,
}

/// What an answered request sets for the rest of the connection, and whether it sets or resets it.
fn parse_standing(text: &[u8]) -> Option<(StandingKind, bool)> {
    let request: StandingRequest = serde_json::from_slice(text).ok()?;
    Some(match request.method.as_str() {
        "initialize" => (StandingKind::Handshake, true),
        "logging/setLevel" => (StandingKind::LogLevel, true),
        "resources/subscribe" => (StandingKind::Subscription(request.params.uri), true),
        "resources/unsubscribe" => (StandingKind::Subscription(request.params.uri), false),
        _ => return None,
    })
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
