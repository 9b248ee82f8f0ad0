//! [`AutorunSnapshot`]: the state of a workspace before a command, and the report of what changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ostler_model::AutorunReport;
use rustix::time::{ClockId, clock_gettime};

use super::repositories::{self, Repository};
use super::scan::{AutorunScanner, ScanBounds};
use super::view::{ChangeFilter, WorkspaceView};

/// The most entries of a workspace that are scanned when a command has ended.
const ENTRIES_MAX: usize = 100_000;
/// The most processor time a scan may take, in milliseconds.
const CPU_MS: u64 = 300;

/// The state of a workspace before a command, to compare with the state afterwards.
#[derive(Debug)]
pub struct AutorunSnapshot {
    workspace: PathBuf,
    upper: Option<PathBuf>,
    pub(super) since: (i64, u64),
    repositories: Vec<Repository>,
}

impl AutorunSnapshot {
    /// Takes the snapshot, right before the command starts.
    #[must_use]
    pub fn take(workspace: &Path, upper: Option<&Path>) -> Self {
        // The clock that file systems use.
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Self {
            workspace: workspace.to_owned(),
            upper: upper.map(Path::to_owned),
            since: (now.tv_sec, u64::try_from(now.tv_nsec).unwrap_or(0)),
            repositories: repositories::read_repositories(workspace),
        }
    }

    /// Reports paths created or changed since the snapshot, within bounds of entries and time.
    #[must_use]
    pub fn report(&self) -> AutorunReport {
        let new = match self.upper {
            Some(_) => ChangeFilter::Upper,
            None => ChangeFilter::Since(self.since),
        };
        let bounds = ScanBounds {
            entries: ENTRIES_MAX,
            cpu_ms: Some(CPU_MS),
        };
        scan(
            &self.workspace,
            self.upper.as_deref(),
            new,
            &self.repositories,
            bounds,
        )
    }
}

/// Finds automatically run files among the changed paths of an overlay.
pub(crate) fn scan_changes(
    workspace: &Path,
    upper: &Path,
    paths: &BTreeSet<&[u8]>,
    entries: usize,
) -> AutorunReport {
    let repositories = repositories::read_repositories(workspace);
    let bounds = ScanBounds {
        entries,
        cpu_ms: None,
    };
    scan(
        workspace,
        Some(upper),
        ChangeFilter::Paths(paths),
        &repositories,
        bounds,
    )
}

pub(super) fn scan(
    workspace: &Path,
    upper: Option<&Path>,
    new: ChangeFilter<'_>,
    repositories: &[Repository],
    bounds: ScanBounds,
) -> AutorunReport {
    // The state directory may be reached through a link.
    let upper = upper.map(|it| std::fs::canonicalize(it).unwrap_or_else(|_| it.to_owned()));
    match WorkspaceView::open(workspace, upper.as_deref(), new) {
        Ok(view) => AutorunScanner::new(workspace, view, repositories, bounds).run(),
        Err(error) => AutorunReport {
            incomplete: Some(format!("the workspace cannot be read: {error}")),
            ..AutorunReport::default()
        },
    }
}
