//! [`Snapshot`]: what there was, and what came of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ostler_model::AutorunReport;
use rustix::time::{ClockId, clock_gettime};

use super::repositories::{self, Repository};
use super::view::{New, View};
use super::walk::{Bounds, Walk};

/// Entries of a workspace that are looked at when a command has ended.
const ENTRIES_MAX: usize = 100_000;
/// Processor time that this may take, in milliseconds.
const CPU_MS: u64 = 300;

/// What was there before a command, to be held against what is there afterwards.
#[derive(Debug)]
pub struct Snapshot {
    workspace: PathBuf,
    upper: Option<PathBuf>,
    pub(super) since: (i64, u64),
    known: Vec<Repository>,
}

impl Snapshot {
    /// Takes it, right before the command starts.
    #[must_use]
    pub fn take(workspace: &Path, upper: Option<&Path>) -> Self {
        // The clock that file systems use.
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Self {
            workspace: workspace.to_owned(),
            upper: upper.map(Path::to_owned),
            since: (now.tv_sec, u64::try_from(now.tv_nsec).unwrap_or(0)),
            known: repositories::read(workspace),
        }
    }

    /// What was made or changed since, within bounds of entries and time.
    #[must_use]
    pub fn report(&self) -> AutorunReport {
        let new = match self.upper {
            Some(_) => New::Layer,
            None => New::Since(self.since),
        };
        let bounds = Bounds {
            entries: ENTRIES_MAX,
            cpu_ms: Some(CPU_MS),
        };
        judge(
            (&self.workspace, self.upper.as_deref()),
            new,
            &self.known,
            bounds,
        )
    }
}

/// What of the changed paths of an overlay is run or obeyed unasked.
pub(crate) fn of_changes(
    workspace: &Path,
    upper: &Path,
    paths: &BTreeSet<&[u8]>,
    entries: usize,
) -> AutorunReport {
    let known = repositories::read(workspace);
    let bounds = Bounds {
        entries,
        cpu_ms: None,
    };
    judge((workspace, Some(upper)), New::Paths(paths), &known, bounds)
}

pub(super) fn judge(
    (workspace, upper): (&Path, Option<&Path>),
    new: New<'_>,
    known: &[Repository],
    bounds: Bounds,
) -> AutorunReport {
    // Our own directory may be reached by a link.
    let upper = upper.map(|it| std::fs::canonicalize(it).unwrap_or_else(|_| it.to_owned()));
    match View::open(workspace, upper.as_deref(), new) {
        Ok(view) => Walk::new(workspace, view, known, bounds).run(),
        Err(error) => AutorunReport {
            incomplete: Some(format!("the workspace cannot be read: {error}")),
            ..AutorunReport::default()
        },
    }
}
