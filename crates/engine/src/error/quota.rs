//! The refusal of a start for which no slot became free.

use std::fmt;
use std::time::Duration;

use ostler_model::ExecutionId;

/// The most waiting starts of one quota; further ones are refused at once.
pub const WAITING_STARTS: usize = 1_000;

/// An execution that holds a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaHolder {
    /// The execution's id.
    pub id: ExecutionId,
    /// Its command line, truncated.
    pub command: String,
}

/// The most holders that a refusal lists; the others are only counted.
pub const HOLDERS_LISTED_MAX: usize = 32;
/// The longest command line of a listed holder, in characters.
pub const HOLDER_COMMAND_CHARS: usize = 60;

/// No slot became free for a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// The number of running executions.
    pub running: usize,
    /// The limit.
    pub limit: u32,
    /// `finite` or `other`.
    pub kind: &'static str,
    /// The holders of slots that the caller sees, oldest first, at most [`HOLDERS_LISTED_MAX`].
    pub holders: Vec<QuotaHolder>,
    /// How long the start waited.
    pub waited: Duration,
    /// Whether the queue is full.
    pub queue_full: bool,
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            running,
            limit,
            kind,
            ..
        } = self;
        write!(f, "{running} of {limit} {kind} executions run already")?;
        for (n, holder) in self.holders.iter().enumerate() {
            let lead = if n == 0 { ": " } else { ", " };
            write!(f, "{lead}{} ({})", holder.id.short(), holder.command)?;
        }
        match self.running.saturating_sub(self.holders.len()) {
            0 => {}
            rest => write!(f, " and {rest} more")?,
        }
        if self.queue_full {
            write!(f, "; {WAITING_STARTS} starts wait for a place already")?;
        } else if !self.waited.is_zero() {
            let waited = self.waited.as_secs_f64();
            write!(f, "; none of them ended within {waited:.1} s")?;
        }
        Ok(())
    }
}
