//! `spec.json`: the specification of an execution and the shim that runs it. Written by the shim
//! before anything runs; read by recovery and by later engines.

use std::path::Path;

use ostler_model::{ExecutionId, Spec, Timestamp};
use serde::{Deserialize, Serialize};

/// The file's name in an execution's directory.
pub const SPEC_FILE: &str = "spec.json";
/// The version byte of [`SpecFile`].
pub const SPEC_FILE_VERSION: u8 = 1;

/// The content of `spec.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecFile {
    /// The format's version, now [`SPEC_FILE_VERSION`].
    pub version: u8,
    /// The execution.
    pub id: ExecutionId,
    /// The newest attempt that was started, from 1.
    pub attempt: u32,
    /// When the spawn of that attempt began.
    pub created_at: Timestamp,
    /// The shim that runs it, and the boot of the machine it belongs to.
    pub boot: ShimIdentity,
    /// The specification, verbatim.
    pub spec: Spec,
}

/// Identifies a process beyond the reuse of pids: boot id, pid and start time (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimIdentity {
    /// The boot id: `/proc/sys/kernel/random/boot_id`.
    pub id: String,
    /// The shim's OS pid.
    pub shim_pid: u32,
    /// The shim's start time in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub shim_start: u64,
    /// Whether the shim was a thread of the engine's own process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_process: bool,
}

/// A spec file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SpecFileError {
    /// The file cannot be read.
    #[error("spec.json cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is not in the format this version writes.
    #[error("spec.json is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// Its version is newer than this code.
    #[error("spec.json has version {0}; this program reads up to {SPEC_FILE_VERSION}")]
    Version(u8),
}

/// Reads `spec.json` in an execution's directory.
///
/// # Errors
/// When the file is missing, damaged or of a newer version.
pub fn read(dir: &Path) -> Result<SpecFile, SpecFileError> {
    let bytes = std::fs::read(dir.join(SPEC_FILE))?;
    let file: SpecFile = serde_json::from_slice(&bytes)?;
    if file.version > SPEC_FILE_VERSION {
        return Err(SpecFileError::Version(file.version));
    }
    Ok(file)
}
