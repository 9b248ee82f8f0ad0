//! What the gate decided, as JSON lines in the execution's `network.jsonl`, and in numbers.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use serde::Serialize;

use super::wire::Counts;
use crate::sys::time;

/// Bytes of lines about what was allowed.
const ALLOWED_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of lines about what was not. Apart, so that a flood of refusals hides nothing.
const REFUSED_BYTES: usize = 1024 * 1024;
/// Decisions whose repetitions are counted; more start the count again.
const KNOWN_MAX: usize = 2048;
/// So often the same decision is written each time; then at every doubling.
const EACH_TIME: u64 = 4;

/// What became of a name or a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Decision {
    /// Carried.
    Allowed,
    /// Against the rules.
    Refused,
    /// Within the rules, and could not be done.
    Failed,
}

/// One line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    /// The name, or the address where it was asked for as such.
    pub(super) host: &'a str,
    /// The TCP port; none for a question for a name.
    pub(super) port: Option<u16>,
    /// The address outside, where one was found.
    pub(super) address: Option<IpAddr>,
    pub(super) decision: Decision,
    /// Why, for people.
    pub(super) reason: &'a str,
}

/// The line as it is written.
#[derive(Serialize)]
struct Line<'a> {
    at: String,
    host: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    decision: Decision,
    reason: &'a str,
    /// How often by now, where it is not the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
}

/// The last line.
#[derive(Serialize)]
struct Summary {
    at: String,
    summary: Counts,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    host: String,
    port: Option<u16>,
    decision: Decision,
    reason: String,
}

/// The file and what may still be written to it.
#[derive(Debug)]
struct Book {
    file: OwnedFd,
    allowed_left: usize,
    refused_left: usize,
    known: HashMap<Key, u64>,
}

/// Log and numbers; without a file only numbers.
#[derive(Debug)]
pub(super) struct Log {
    book: Option<RefCell<Book>>,
    counts: Cell<Counts>,
}

impl Log {
    pub(super) fn new(file: Option<OwnedFd>) -> Self {
        let book = |file| {
            RefCell::new(Book {
                file,
                allowed_left: ALLOWED_BYTES,
                refused_left: REFUSED_BYTES,
                known: HashMap::new(),
            })
        };
        Self {
            book: file.map(book),
            counts: Cell::default(),
        }
    }

    pub(super) const fn counts(&self) -> Counts {
        self.counts.get()
    }

    pub(super) fn count(&self, add: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        add(&mut counts);
        self.counts.set(counts);
    }

    /// Counts a decision on a connection or a refused name, and writes it down.
    pub(super) fn decided(&self, entry: &Entry<'_>) {
        self.count(|counts| match (entry.decision, entry.port) {
            (Decision::Refused, None) => counts.names_refused += 1,
            (Decision::Refused, Some(_)) => counts.refused += 1,
            (Decision::Failed, _) => counts.failed += 1,
            (Decision::Allowed, _) => counts.connections += 1,
        });
        if let Some(book) = &self.book {
            book.borrow_mut().write(entry);
        }
    }

    /// Writes the numbers as the last line.
    pub(super) fn finish(&self) {
        if let Some(book) = &self.book {
            let summary = self.counts();
            let at = now();
            book.borrow().append(&Summary { at, summary });
        }
    }
}

impl Book {
    fn write(&mut self, entry: &Entry<'_>) {
        let times = self.times(entry);
        if times > EACH_TIME && !times.is_power_of_two() {
            return;
        }
        let left = match entry.decision {
            Decision::Allowed => self.allowed_left,
            Decision::Refused | Decision::Failed => self.refused_left,
        };
        if left == 0 {
            return;
        }
        let written = self.append(&Line {
            at: now(),
            host: entry.host,
            port: entry.port,
            address: entry.address,
            decision: entry.decision,
            reason: entry.reason,
            times: (times > 1).then_some(times),
        });
        let left = left.saturating_sub(written);
        match entry.decision {
            Decision::Allowed => self.allowed_left = left,
            Decision::Refused | Decision::Failed => self.refused_left = left,
        }
    }

    /// How often this was decided by now.
    fn times(&mut self, entry: &Entry<'_>) -> u64 {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let key = Key {
            host: entry.host.to_owned(),
            port: entry.port,
            decision: entry.decision,
            reason: entry.reason.to_owned(),
        };
        let times = self.known.entry(key).or_default();
        *times += 1;
        *times
    }

    /// One line in one write, so that whoever reads along sees whole lines. A full disk costs
    /// lines, and nothing else.
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
    time::timestamp(time::now_ns()).to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn written(write: impl FnOnce(&Log)) -> Vec<serde_json::Value> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let copy = file.reopen().expect("opened again");
        write(&Log::new(Some(copy.into())));
        let mut text = String::new();
        file.read_to_string(&mut text).expect("readable");
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("JSON lines")
    }

    fn refused<'a>(host: &'a str) -> Entry<'a> {
        Entry {
            host,
            port: None,
            address: None,
            decision: Decision::Refused,
            reason: "not in the allow list",
        }
    }

    #[test]
    fn repetitions_are_counted_and_written_ever_more_rarely() {
        let lines = written(|log| {
            for _ in 0..1000 {
                log.decided(&refused("evil.test"));
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
                log.decided(&refused(&format!("{number}\n\"{}", "x".repeat(200))));
            }
            log.decided(&Entry {
                host: "example.org",
                port: Some(443),
                address: Some([192, 0, 2, 1].into()),
                decision: Decision::Allowed,
                reason: "rule",
            });
            log.finish();
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
