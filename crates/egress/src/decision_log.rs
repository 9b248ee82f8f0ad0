//! The decisions of the egress proxy, as JSON lines in the execution's `network.jsonl` and as
//! counters.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use ostler_model::Timestamp;
use serde::Serialize;

use crate::protocol::EgressCounts;

/// How many bytes of lines about allowed connections are written.
const ALLOWED_BYTES: usize = 2 * 1024 * 1024;
/// How many bytes of lines about everything else are written. Counted separately, so that a flood
/// of refusals hides nothing.
const REFUSED_BYTES: usize = 1024 * 1024;
/// How many distinct decisions are counted for repetitions; one more resets the counts.
const REPETITIONS_MAX: usize = 2048;
/// A repeated decision is written each time up to this count; then at every doubling.
const ALWAYS_LOGGED: u64 = 4;

/// The outcome for a name or a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EgressDecision {
    /// The connection was relayed.
    Allowed,
    /// Denied by the rules.
    Refused,
    /// Allowed by the rules, but failed.
    Failed,
}

/// One decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecisionEntry<'a> {
    /// The name, or the address where the client connected to an address.
    pub(crate) host: &'a str,
    /// The TCP port; none for a question for a name.
    pub(crate) port: Option<u16>,
    /// The address outside, where one was found.
    pub(crate) address: Option<IpAddr>,
    pub(crate) decision: EgressDecision,
    /// Why, for people.
    pub(crate) reason: &'a str,
}

/// A decision as it is written.
#[derive(Serialize)]
struct DecisionLine<'a> {
    at: String,
    host: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    decision: EgressDecision,
    reason: &'a str,
    /// The count of this decision so far, where it is a repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
}

/// The last line.
#[derive(Serialize)]
struct SummaryLine {
    at: String,
    summary: EgressCounts,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct DecisionKey {
    host: String,
    port: Option<u16>,
    decision: EgressDecision,
    reason: String,
}

/// The file and how many bytes may still be written to it.
#[derive(Debug)]
struct DecisionLogFile {
    file: OwnedFd,
    allowed_budget: usize,
    refused_budget: usize,
    repetitions: HashMap<DecisionKey, u64>,
}

/// The log and the counters; without a file only the counters.
#[derive(Debug)]
pub(crate) struct DecisionLog {
    file: Option<RefCell<DecisionLogFile>>,
    counts: Cell<EgressCounts>,
}

impl DecisionLog {
    pub(crate) fn new(file: Option<OwnedFd>) -> Self {
        let open = |file| {
            RefCell::new(DecisionLogFile {
                file,
                allowed_budget: ALLOWED_BYTES,
                refused_budget: REFUSED_BYTES,
                repetitions: HashMap::new(),
            })
        };
        Self {
            file: file.map(open),
            counts: Cell::default(),
        }
    }

    pub(crate) const fn counts(&self) -> EgressCounts {
        self.counts.get()
    }

    pub(crate) fn count(&self, add: impl FnOnce(&mut EgressCounts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }

    /// Counts a decision on a connection or a refused name, and writes it down.
    pub(crate) fn record(&self, entry: &DecisionEntry<'_>) {
        self.count(|counts| match (entry.decision, entry.port) {
            (EgressDecision::Refused, None) => counts.names_refused += 1,
            (EgressDecision::Refused, Some(_)) => counts.refused += 1,
            (EgressDecision::Failed, _) => counts.failed += 1,
            (EgressDecision::Allowed, _) => counts.connections += 1,
        });
        if let Some(file) = &self.file {
            file.borrow_mut().write(entry);
        }
    }

    /// Writes the numbers as the last line.
    pub(crate) fn write_summary(&self) {
        if let Some(file) = &self.file {
            let summary = self.counts();
            let at = now();
            file.borrow().append(&SummaryLine { at, summary });
        }
    }
}

impl DecisionLogFile {
    fn write(&mut self, entry: &DecisionEntry<'_>) {
        let times = self.count_repetition(entry);
        if times > ALWAYS_LOGGED && !times.is_power_of_two() {
            return;
        }
        let budget = match entry.decision {
            EgressDecision::Allowed => self.allowed_budget,
            EgressDecision::Refused | EgressDecision::Failed => self.refused_budget,
        };
        if budget == 0 {
            return;
        }
        let written = self.append(&DecisionLine {
            at: now(),
            host: entry.host,
            port: entry.port,
            address: entry.address,
            decision: entry.decision,
            reason: entry.reason,
            times: (times > 1).then_some(times),
        });
        let budget = budget.saturating_sub(written);
        match entry.decision {
            EgressDecision::Allowed => self.allowed_budget = budget,
            EgressDecision::Refused | EgressDecision::Failed => self.refused_budget = budget,
        }
    }

    /// Counts one more repetition of a decision and returns the count.
    fn count_repetition(&mut self, entry: &DecisionEntry<'_>) -> u64 {
        if self.repetitions.len() >= REPETITIONS_MAX {
            self.repetitions.clear();
        }
        let key = DecisionKey {
            host: entry.host.to_owned(),
            port: entry.port,
            decision: entry.decision,
            reason: entry.reason.to_owned(),
        };
        let times = self.repetitions.entry(key).or_default();
        *times += 1;
        *times
    }

    /// Writes one line in one write(2), so that concurrent readers see whole lines, and returns its
    /// length. A full disk loses lines, and nothing else.
    fn append(&self, line: &impl Serialize) -> usize {
        let Ok(mut bytes) = serde_json::to_vec(line) else {
            return 0;
        };
        bytes.push(b'\n');
        let _lost = rustix::io::write(&self.file, &bytes);
        bytes.len()
    }
}

fn now() -> String {
    Timestamp::now().to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn written(write: impl FnOnce(&DecisionLog)) -> Vec<serde_json::Value> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let copy = file.reopen().expect("opened again");
        write(&DecisionLog::new(Some(copy.into())));
        let mut text = String::new();
        file.read_to_string(&mut text).expect("readable");
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("JSON lines")
    }

    fn refused<'a>(host: &'a str) -> DecisionEntry<'a> {
        DecisionEntry {
            host,
            port: None,
            address: None,
            decision: EgressDecision::Refused,
            reason: "not in the allow list",
        }
    }

    #[test]
    fn repetitions_are_counted_and_written_ever_more_rarely() {
        let lines = written(|log| {
            for _ in 0..1000 {
                log.record(&refused("evil.test"));
            }
            assert_eq!(log.counts().names_refused, 1000);
        });
        assert!(lines.len() < 16, "{}", lines.len());
        assert_eq!(lines.last().expect("some")["times"], 512);
    }

    #[test]
    fn a_flood_of_refusals_ends_and_hides_no_connection() {
        let lines = written(|log| {
            for number in 0..20_000 {
                log.record(&refused(&format!("{number}\n\"{}", "x".repeat(200))));
            }
            log.record(&DecisionEntry {
                host: "example.org",
                port: Some(443),
                address: Some([192, 0, 2, 1].into()),
                decision: EgressDecision::Allowed,
                reason: "rule",
            });
            log.write_summary();
        });
        let bytes: usize = lines.iter().map(|line| line.to_string().len()).sum();
        assert!(bytes < REFUSED_BYTES + 4096, "{bytes}");
        let [.., allowed, summary] = lines.as_slice() else {
            panic!("two lines at least");
        };
        assert_eq!(allowed["host"], "example.org");
        assert_eq!(allowed["address"], "192.0.2.1");
        assert_eq!(summary["summary"]["names_refused"], 20_000);
    }
}
