//! Missing output: what it means for a verb that passes output on, and its exit code.
//!
//! One rule for all verbs. Lost output is reported with its size and makes the verb exit with the
//! code of storage errors: the reader of the output must not take it for complete. Output that was
//! dropped on purpose, by a person or by retention, is reported and is not an error; only `run`,
//! which replaces the command itself, must pass everything on.

use ostler_api::{ExecutionBody, GapBody};
use ostler_model::ErrorCode;

use crate::error::CommandError;

/// The output that was to be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossScope {
    /// Everything that the command prints.
    All,
    /// Everything that is retained.
    Retained,
}

/// The missing part of the output that was passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MissingOutput {
    /// The number of missing bytes.
    total_bytes: u64,
    /// The number of those that were not dropped on purpose.
    lost_bytes: u64,
}

impl MissingOutput {
    /// A number of lost bytes, for a response without further details.
    pub(crate) const fn of_lost_bytes(bytes: u64) -> Self {
        Self {
            total_bytes: bytes,
            lost_bytes: bytes,
        }
    }

    /// Counts a gap.
    pub(crate) const fn add(&mut self, gap: GapBody) {
        self.total_bytes += gap.bytes();
        self.lost_bytes += gap.lost_bytes;
    }

    /// Counts a gap, and reports it at its position.
    pub(crate) fn report_gap(&mut self, gap: GapBody) {
        self.add(gap);
        crate::print_note(&format!("{} bytes of output are gone", gap.bytes()));
    }

    /// The number of bytes that are missing in this scope.
    pub(crate) const fn missing_bytes(self, scope: LossScope) -> u64 {
        match scope {
            LossScope::All => self.total_bytes,
            LossScope::Retained => self.lost_bytes,
        }
    }

    /// Checks that the output was complete in this scope.
    ///
    /// # Errors
    /// When it was not.
    pub(crate) fn check(self, scope: LossScope, info: &ExecutionBody) -> Result<(), CommandError> {
        match self.missing_bytes(scope) {
            0 => Ok(()),
            bytes => Err(self.error(info, bytes)),
        }
    }

    fn error(self, info: &ExecutionBody, bytes: u64) -> CommandError {
        let message = format!("{}: {bytes} bytes of its output are missing above", info.id);
        if !info.degraded.is_empty() {
            let reasons = info.degraded.join("; ");
            return CommandError::new(ErrorCode::Storage, format!("{message} ({reasons})"))
                .with_hint("`ostler rm --all` frees the space that ended commands take");
        }
        let error = CommandError::new(ErrorCode::Storage, message);
        match self.lost_bytes {
            0 => error,
            _ => error.with_hint("files of its output were damaged or removed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_on_purpose_is_no_loss_but_for_run() {
        let mut missing = MissingOutput::default();
        let gap = |to, lost_bytes| GapBody {
            from: 0,
            to,
            lost_bytes,
        };
        assert_eq!(missing.missing_bytes(LossScope::All), 0);
        missing.add(gap(10, 0));
        assert_eq!(missing.missing_bytes(LossScope::Retained), 0);
        assert_eq!(missing.missing_bytes(LossScope::All), 10);
        missing.add(gap(7, 3));
        assert_eq!(missing.missing_bytes(LossScope::Retained), 3);
        assert_eq!(missing.missing_bytes(LossScope::All), 17);
        assert_eq!(
            MissingOutput::of_lost_bytes(5).missing_bytes(LossScope::Retained),
            5
        );
    }
}
