//! Output that is missing: what it means for a verb that passes output on, and its exit code.
//!
//! One rule for all of them. What was lost is told with its size and makes the verb end with the
//! exit code of storage: whoever reads our output must not take it for whole. What was dropped
//! on purpose, by a person or by retention, is told and no error; `run` alone, which stands in
//! for the command itself, must pass everything.

use ostler_model::ErrorCode;
use ostler_server::wire::{GapBody, InfoBody};

use crate::error::CommandError;

/// What was to be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Everything the command prints.
    Everything,
    /// What is kept of it.
    Kept,
}

/// What is missing of the output that was passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Missing {
    /// Bytes.
    gone: u64,
    /// Those that nobody dropped.
    lost: u64,
}

impl Missing {
    /// Bytes that were lost, for an answer that says no more than that.
    pub(crate) const fn lost(bytes: u64) -> Self {
        Self {
            gone: bytes,
            lost: bytes,
        }
    }

    /// Notes a gap.
    pub(crate) const fn add(&mut self, gap: GapBody) {
        self.gone += gap.bytes();
        self.lost += gap.lost_bytes;
    }

    /// Notes a gap, and says so where it stands.
    pub(crate) fn tell(&mut self, gap: GapBody) {
        self.add(gap);
        crate::tell(&format!("{} bytes of output are gone", gap.bytes()));
    }

    /// How many bytes make the output less than what was wanted.
    pub(crate) const fn missed(self, wanted: Wanted) -> u64 {
        match wanted {
            Wanted::Everything => self.gone,
            Wanted::Kept => self.lost,
        }
    }

    /// Whether the output was whole, as far as it was wanted.
    ///
    /// # Errors
    /// When it was not.
    pub(crate) fn check(self, wanted: Wanted, info: &InfoBody) -> Result<(), CommandError> {
        match self.missed(wanted) {
            0 => Ok(()),
            bytes => Err(incomplete(info, bytes)),
        }
    }
}

fn incomplete(info: &InfoBody, bytes: u64) -> CommandError {
    let why = match info.degraded.join("; ") {
        none if none.is_empty() => String::new(),
        degraded => format!(" ({degraded})"),
    };
    let message = format!(
        "{}: {bytes} bytes of its output are missing above{why}",
        info.id
    );
    CommandError::new(ErrorCode::Storage, message)
        .with_hint("`ostler rm --all` frees the space that ended commands take")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_on_purpose_is_no_loss_but_for_run() {
        let mut missing = Missing::default();
        let gap = |to, lost_bytes| GapBody {
            from: 0,
            to,
            lost_bytes,
        };
        assert_eq!(missing.missed(Wanted::Everything), 0);
        missing.add(gap(10, 0));
        assert_eq!(missing.missed(Wanted::Kept), 0);
        assert_eq!(missing.missed(Wanted::Everything), 10);
        missing.add(gap(7, 3));
        assert_eq!(missing.missed(Wanted::Kept), 3);
        assert_eq!(missing.missed(Wanted::Everything), 17);
        assert_eq!(Missing::lost(5).missed(Wanted::Kept), 5);
    }
}
