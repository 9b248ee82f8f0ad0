//! What a backend reads of a running tree for the resource monitor.

use std::time::Instant;

use ostler_model::Timestamp;

/// The counters of a running process tree at one moment; none where they cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageReading {
    /// When it was read.
    pub at: Timestamp,
    /// The same on the monotonic clock.
    pub instant: Instant,
    /// Processor time in microseconds since any moment before: only differences have a meaning, and
    /// one below zero counts as 0. Processes that ended meanwhile are included as far as possible.
    pub cpu_us: u64,
    /// Resident memory in bytes; shared pages count for each process.
    pub memory_bytes: u64,
    /// Bytes that its processes, and those they waited for, have read from storage.
    pub read_bytes: Option<u64>,
    /// The same of bytes written.
    pub written_bytes: Option<u64>,
    /// Bytes received by the network namespace of the tree, if it has one of its own; loopback is
    /// not counted.
    pub received_bytes: Option<u64>,
    /// The same of bytes sent.
    pub sent_bytes: Option<u64>,
    /// Living processes.
    pub processes: u32,
}
