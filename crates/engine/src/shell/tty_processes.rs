//! The processes on a shell's terminal: session leader, foreground group, readers.

use ostler_model::SnapshotRequest;
use ostler_model::snapshot::TreeSnapshot;

use crate::engine_inner::EngineInner;
use crate::execution::ExecutionHandle;

/// Inspects the process tree; none between two attempts.
pub(super) async fn snapshot(core: &EngineInner, entry: &ExecutionHandle) -> Option<TreeSnapshot> {
    let request = SnapshotRequest {
        foreground: true,
        ..SnapshotRequest::default()
    };
    core.backend.snapshot(entry.id, request).await.ok()
}

/// The session leader: the shell, until it executes another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionLeader {
    /// Its OS pid; another process comes first once it has ended.
    pub(super) pid: u32,
    /// Its name.
    pub(super) name: String,
}

/// The session leader, or the oldest process that it left.
pub(super) fn session_leader(snapshot: &TreeSnapshot) -> Option<SessionLeader> {
    let first = snapshot.members.first()?;
    Some(SessionLeader {
        pid: first.pid,
        name: first.name.clone(),
    })
}

/// The process in the foreground of the terminal instead of the shell.
pub(super) fn foreground_process(snapshot: &TreeSnapshot) -> Option<(&str, u32)> {
    let pid = snapshot.foreground?.pid;
    let (leader, others) = snapshot.members.split_first()?;
    if leader.pid == pid {
        return None;
    }
    let member = others.iter().find(|member| member.pid == pid)?;
    Some((&member.name, pid))
}
