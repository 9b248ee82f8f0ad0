//! The states of a context.

use std::fmt;

use ostler_model::Timestamp;

/// The state of a context. A use is a start that was let in, and later the execution it led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextState {
    /// Its directory is being created; nothing may use it yet.
    Creating,
    /// It may be used, and nothing uses it.
    Idle {
        /// Since when.
        since: Timestamp,
    },
    /// It is in use, and may be used by more.
    Busy {
        /// How many use it, at least one.
        uses: u32,
    },
    /// It accepts no more uses. Once the last one is over, its files are removed.
    Ending {
        /// Why.
        end: ContextEnd,
        /// How many still use it.
        uses: u32,
    },
    /// Its files could not be removed. It accepts no uses; a request to remove it tries again.
    Failed {
        /// What prevented that.
        problem: String,
    },
    /// It is over: nothing of it is kept.
    Ended {
        /// Why.
        end: ContextEnd,
    },
}

/// Why a context ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextEnd {
    /// It was not used for its idle time.
    Idle,
    /// A client asked for it.
    Requested,
    /// It failed the check that precedes each use.
    Unhealthy {
        /// What the check found.
        problem: String,
    },
    /// Its directory could not be created, or its creation was interrupted.
    NotCreated,
}

impl ContextState {
    /// Whether it may be used now.
    #[must_use]
    pub const fn is_warm(&self) -> bool {
        matches!(self, Self::Idle { .. } | Self::Busy { .. })
    }

    /// How many use it.
    #[must_use]
    pub const fn uses(&self) -> u32 {
        match self {
            Self::Busy { uses } | Self::Ending { uses, .. } => *uses,
            Self::Creating | Self::Idle { .. } | Self::Failed { .. } | Self::Ended { .. } => 0,
        }
    }

    /// The state in one word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Idle { .. } => "idle",
            Self::Busy { .. } => "busy",
            Self::Ending { .. } => "ending",
            Self::Failed { .. } => "failed",
            Self::Ended { .. } => "ended",
        }
    }
}

impl fmt::Display for ContextEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("it was idle"),
            Self::Requested => f.write_str("its removal was requested"),
            Self::Unhealthy { problem } => write!(f, "it failed its check: {problem}"),
            Self::NotCreated => f.write_str("its creation was interrupted"),
        }
    }
}
