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

/// The name of the session leader: the shell, until it executes another program.
pub(super) fn leader_name(snapshot: &TreeSnapshot) -> Option<String> {
    snapshot.members.first().map(|leader| leader.name.clone())
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
