//! What can be searched for.

use ostler_model::{Caller, Timestamp};

use crate::row::HistoryRow;

/// The most rows of one page.
pub const LISTED_ROWS_MAX: u64 = 500;
/// The most rows that `skip` passes over; beyond that, pages are reached by position.
pub const SKIPPED_ROWS_MAX: u64 = 10_000;

/// Selects rows; newest first. Absent conditions select everything that the caller may see.
#[derive(Debug, Clone)]
pub struct HistoryQuery {
    /// Whose rows are visible.
    pub caller: Caller,
    /// Only rows before this position, in the history's order.
    pub before: Option<u64>,
    /// Only those of this project.
    pub project: Option<String>,
    /// Only those of this session.
    pub session: Option<String>,
    /// Only those in this state.
    pub status: Option<HistoryStatus>,
    /// Only those with this label.
    pub label: Option<String>,
    /// Only those whose command line contains this text; ASCII letters of either case match.
    pub text: Option<String>,
    /// Only those requested then or later.
    pub since: Option<Timestamp>,
    /// Only those requested before then.
    pub until: Option<Timestamp>,
    /// The most rows of the page, at most [`LISTED_ROWS_MAX`].
    pub limit: u64,
    /// Rows passed over first, at most [`SKIPPED_ROWS_MAX`].
    pub skip: u64,
}

impl HistoryQuery {
    /// Everything that this caller may see.
    #[must_use]
    pub const fn all_of(caller: Caller) -> Self {
        Self {
            caller,
            before: None,
            project: None,
            session: None,
            status: None,
            label: None,
            text: None,
            since: None,
            until: None,
            limit: LISTED_ROWS_MAX,
            skip: 0,
        }
    }

    pub(crate) fn page_limit(&self) -> u64 {
        self.limit.clamp(1, LISTED_ROWS_MAX)
    }

    pub(crate) fn page_skip(&self) -> u64 {
        self.skip.min(SKIPPED_ROWS_MAX)
    }
}

/// How an execution is, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryStatus {
    /// Not ended.
    Running,
    /// Exited with 0.
    Succeeded,
    /// Ended in any other way.
    Failed,
    /// Ended because a timeout expired.
    TimedOut,
    /// Ended on request.
    Stopped,
    /// The end is unknown.
    Lost,
}

impl HistoryStatus {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Stopped,
        Self::Lost,
    ];

    /// The state of an execution; a timeout, a stop and a loss are told apart from other failures.
    #[must_use]
    pub fn of(row: &HistoryRow) -> Self {
        match row.cause.as_deref() {
            None => Self::Running,
            Some("exited") if row.code == Some(0) => Self::Succeeded,
            Some("timed_out") => Self::TimedOut,
            Some("stopped") => Self::Stopped,
            Some("lost") => Self::Lost,
            Some(_) => Self::Failed,
        }
    }

    /// Its name in requests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }

    /// The one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }
}

/// One page of the history.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryPage {
    /// The rows, newest first.
    pub rows: Vec<HistoryRow>,
    /// Where the next page begins; none where this is the last one.
    pub next_before: Option<u64>,
}

impl HistoryPage {
    /// The page of at most `limit` rows, of which one more was read to see whether there are more.
    pub(crate) fn of(mut rows: Vec<HistoryRow>, limit: u64) -> Self {
        let has_more = rows.len() as u64 > limit;
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let next_before = rows.last().filter(|_| has_more).map(|row| row.position);
        Self { rows, next_before }
    }
}
