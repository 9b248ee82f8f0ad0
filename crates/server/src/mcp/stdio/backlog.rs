//! What of a connection is not done: a fold of its log's records. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::lines::{Line, Splitter};
use super::record::{Binding, LineFlags, Output, Record};

/// A line that is not answered yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) text: Vec<u8>,
    /// The line was too long, and this is the beginning of it.
    pub(super) too_long: bool,
    /// The executions its requests start.
    pub(super) bindings: Vec<Binding>,
    /// Members whose call must not be repeated.
    pub(super) dispatched: BTreeSet<u32>,
    /// The client was told that its subscription holds.
    pub(super) acknowledged: bool,
}

/// A line that was answered and holds for the rest of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) line: u64,
    pub(super) text: Vec<u8>,
    what: What,
}

/// What a standing line sets; the last one of each counts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Handshake,
    LogLevel,
    Subscription(String),
}

/// The fold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Backlog {
    next_line: u64,
    splitter: Splitter,
    live: BTreeMap<u64, Pending>,
    standing: Vec<Standing>,
    generation: u32,
}

impl Backlog {
    /// Takes one record in; the lines that ended with it.
    pub(super) fn apply(&mut self, record: &Record<'_>) -> Vec<(u64, Line)> {
        match record {
            Record::Snapshot {
                next_line,
                generation,
                skipping,
                partial,
            } => {
                *self = Self {
                    next_line: *next_line,
                    generation: *generation,
                    splitter: Splitter {
                        partial: partial.to_vec(),
                        skipping: *skipping,
                    },
                    ..Self::default()
                };
            }
            Record::Input(bytes) => return self.input(bytes),
            Record::Line { line, flags, text } => self.restore(*line, *flags, text),
            Record::Bound { line, binding } => {
                if let Some(pending) = self.live.get_mut(line) {
                    pending.bindings.push(*binding);
                }
            }
            Record::Dispatched { line, member } => {
                if let Some(pending) = self.live.get_mut(line) {
                    pending.dispatched.insert(*member);
                }
            }
            Record::Output { output, .. } => self.output(*output),
            Record::Attached => self.generation = self.generation.saturating_add(1),
        }
        Vec::new()
    }

    fn input(&mut self, bytes: &[u8]) -> Vec<(u64, Line)> {
        let mut lines = Vec::new();
        for line in self.splitter.push(bytes) {
            let (text, too_long) = match &line {
                Line::Whole(text) => (text.clone(), false),
                Line::TooLong(text) => (text.clone(), true),
            };
            let pending = Pending {
                text,
                too_long,
                ..Pending::default()
            };
            self.live.insert(self.next_line, pending);
            lines.push((self.next_line, line));
            self.next_line = self.next_line.saturating_add(1);
        }
        lines
    }

    fn restore(&mut self, line: u64, flags: LineFlags, text: &[u8]) {
        if flags.standing {
            self.stand(line, text.to_vec());
            return;
        }
        let pending = Pending {
            text: text.to_vec(),
            too_long: flags.too_long,
            acknowledged: flags.acknowledged,
            ..Pending::default()
        };
        self.live.insert(line, pending);
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Message => {}
            Output::Answer { line, standing } => {
                if let Some(pending) = self.live.remove(&line)
                    && standing
                {
                    self.stand(line, pending.text);
                }
            }
            Output::Acknowledgement { line } => {
                if let Some(pending) = self.live.get_mut(&line) {
                    pending.acknowledged = true;
                }
            }
        }
    }

    fn stand(&mut self, line: u64, text: Vec<u8>) {
        let Some((what, set)) = standing(&text) else {
            return;
        };
        self.standing.retain(|it| it.what != what);
        if set {
            self.standing.push(Standing { line, text, what });
        }
    }

    /// A line needs no answer, or none any more.
    pub(super) fn settle(&mut self, line: u64) {
        self.live.remove(&line);
    }

    /// The lines without an answer.
    pub(super) const fn live(&self) -> &BTreeMap<u64, Pending> {
        &self.live
    }

    /// The lines that hold for the rest of the connection, the handshake first.
    pub(super) fn standing(&self) -> &[Standing] {
        &self.standing
    }

    /// The resources subscribed to.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = &str> {
        self.standing.iter().filter_map(|it| match &it.what {
            What::Subscription(uri) => Some(uri.as_str()),
            What::Handshake | What::LogLevel => None,
        })
    }

    /// How many services had the connection before this one.
    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }

    /// Records from which the same fold is made.
    pub(super) fn snapshot(&self) -> Vec<u8> {
        let first = Record::Snapshot {
            next_line: self.next_line,
            generation: self.generation,
            skipping: self.splitter.skipping,
            partial: &self.splitter.partial,
        };
        let mut bytes = first.encode();
        for Standing { line, text, .. } in &self.standing {
            let flags = LineFlags {
                standing: true,
                ..LineFlags::default()
            };
            let line = *line;
            bytes.extend(Record::Line { line, flags, text }.encode());
        }
        for (&line, pending) in &self.live {
            let flags = LineFlags {
                standing: false,
                acknowledged: pending.acknowledged,
                too_long: pending.too_long,
            };
            let text = &pending.text;
            bytes.extend(Record::Line { line, flags, text }.encode());
            for &binding in &pending.bindings {
                bytes.extend(Record::Bound { line, binding }.encode());
            }
            for &member in &pending.dispatched {
                bytes.extend(Record::Dispatched { line, member }.encode());
            }
        }
        bytes
    }
}

#[derive(Deserialize)]
struct Request {
    method: String,
    #[serde(default)]
    params: Params,
}

#[derive(Deserialize, Default)]
struct Params {
    #[serde(default)]
    uri: String,
}

/// What an answered request sets for the rest of the connection, and whether it sets or
/// resets it.
fn standing(text: &[u8]) -> Option<(What, bool)> {
    let request: Request = serde_json::from_slice(text).ok()?;
    Some(match request.method.as_str() {
        "initialize" => (What::Handshake, true),
        "logging/setLevel" => (What::LogLevel, true),
        "resources/subscribe" => (What::Subscription(request.params.uri), true),
        "resources/unsubscribe" => (What::Subscription(request.params.uri), false),
        _ => return None,
    })
}

#[cfg(test)]
#[path = "backlog_tests.rs"]
mod tests;
