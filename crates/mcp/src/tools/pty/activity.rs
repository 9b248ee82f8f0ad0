//! What a silent program does, from its state in /proc.

use std::time::Duration;

use ostler_model::{SnapshotRequest, TreeSnapshot};
use tokio::time::Instant;

use super::family::ToolFamily;
use crate::tool_call::ToolCall;

/// Clock ticks per second in which proc(5) counts processor time on Linux (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
/// The share of one processor above which a program counts as computing.
const COMPUTING_SHARE: f64 = 0.1;

/// What a silent program does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::tools) enum Activity {
    /// It computes, on this many processors on average.
    Computing { processors: f64 },
    /// It neither computes nor reads its terminal: it sleeps, or waits for something else.
    Waiting,
    /// It reads its terminal, perhaps among other files.
    Reading,
}

impl Activity {
    /// Its name in structured content.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Computing { .. } => "computing",
            Self::Waiting => "waiting",
            Self::Reading => "reading",
        }
    }

    /// Its description; none where the reply already shows it.
    pub(super) fn describe(self, family: ToolFamily, id: &str) -> Option<String> {
        let text = match self {
            Self::Computing { processors } => {
                format!("it prints nothing and still computes (on {processors:.1} processors)")
            }
            Self::Waiting => "it prints nothing and does not read its terminal: it sleeps, or \
                              waits for something else"
                .to_owned(),
            Self::Reading => return None,
        };
        let next = family.how_to_wait(id);
        Some(format!("[{text}; wait on: {next}]"))
    }

    /// From two snapshots, taken `apart`.
    fn between(first: &TreeSnapshot, last: &TreeSnapshot, apart: Duration) -> Self {
        let ticks = last.usage.cpu_ticks.saturating_sub(first.usage.cpu_ticks);
        // Ticks of a few seconds are far below 2^32.
        let seconds = f64::from(u32::try_from(ticks).unwrap_or(u32::MAX)) / TICKS_PER_SECOND;
        let processors = seconds / apart.as_secs_f64().max(f64::MIN_POSITIVE);
        let waits = last
            .foreground
            .is_some_and(|it| it.reads.is_some() || it.polls);
        if processors >= COMPUTING_SHARE {
            Self::Computing { processors }
        } else if waits {
            Self::Reading
        } else {
            Self::Waiting
        }
    }
}

/// Takes two snapshots of a program's processes.
#[derive(Debug)]
pub(super) struct ActivityMeter<'a> {
    call: ToolCall<'a>,
    id: &'a str,
    first: Option<(TreeSnapshot, Instant)>,
}

impl<'a> ActivityMeter<'a> {
    pub(super) const fn new(call: ToolCall<'a>, id: &'a str) -> Self {
        Self {
            call,
            id,
            first: None,
        }
    }

    /// Takes the first snapshot; taken again it replaces the one before.
    pub(super) async fn begin(&mut self) {
        let snapshot = self.observe().await;
        self.first = snapshot.map(|seen| (seen, Instant::now()));
    }

    /// The activity since the first snapshot; none without one.
    pub(super) async fn end(self) -> Option<Activity> {
        let last = self.observe().await?;
        let (first, at) = self.first?;
        Some(Activity::between(&first, &last, at.elapsed()))
    }

    async fn observe(&self) -> Option<TreeSnapshot> {
        let request = SnapshotRequest {
            foreground: true,
            ..SnapshotRequest::default()
        };
        let (engine, caller) = (self.call.engine, self.call.caller);
        let snapshot = engine.tree_snapshot(caller, self.id, request).await.ok();
        snapshot.filter(|seen| !seen.members.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use ostler_model::snapshot::{ForegroundProcess, LiveUsage};

    use super::*;

    fn snapshot(cpu_ticks: u64, polls: bool) -> TreeSnapshot {
        TreeSnapshot {
            usage: LiveUsage {
                cpu_ticks,
                resident_pages: 0,
            },
            foreground: Some(ForegroundProcess {
                polls,
                ..ForegroundProcess::default()
            }),
            ..TreeSnapshot::default()
        }
    }

    #[test]
    fn what_two_observations_tell() {
        let second = Duration::from_secs(1);
        for (first, last, name) in [
            (snapshot(0, false), snapshot(100, false), "computing"),
            (snapshot(50, true), snapshot(75, true), "computing"),
            (snapshot(50, false), snapshot(51, false), "waiting"),
            (snapshot(50, true), snapshot(51, true), "reading"),
            // A child that computed has ended meanwhile.
            (snapshot(500, true), snapshot(3, true), "reading"),
        ] {
            let found = Activity::between(&first, &last, second);
            assert_eq!(found.as_str(), name, "{first:?} {last:?}");
        }
        let busy = Activity::between(&snapshot(0, false), &snapshot(200, false), second);
        assert_eq!(busy, Activity::Computing { processors: 2.0 });
        assert!(
            busy.describe(ToolFamily::Pty, "k")
                .is_some_and(|it| it.contains("2.0 processors"))
        );
    }
}
