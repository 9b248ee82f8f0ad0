//! What a process tree used, as the resource monitor samples it.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// What a process tree used at one moment, and since the sample before; none where it cannot be measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct UsageSample {
    /// When it was taken.
    pub at: Timestamp,
    /// Processor time since the sample before, in percent of one core; none for the first.
    pub cpu_percent: Option<f32>,
    /// Resident memory in bytes.
    pub memory_bytes: u64,
    /// Bytes by which the workspace has grown since the start.
    pub disk_bytes: Option<u64>,
    /// Bytes read from storage since the start.
    pub read_bytes: Option<u64>,
    /// Bytes written to storage since the start.
    pub written_bytes: Option<u64>,
    /// Bytes received through the network namespace of the execution since the start.
    pub received_bytes: Option<u64>,
    /// Bytes sent through the network namespace of the execution since the start.
    pub sent_bytes: Option<u64>,
    /// Living processes.
    pub processes: u32,
}
