//! The processes of a shell's terminal: session leader, foreground group, readers.

use ostler_model::SnapshotRequest;
use ostler_model::snapshot::TreeSnapshot;

use crate::engine_inner::EngineInner;
use crate::execution::ExecutionHandle;

/// A look at the kernel; none between two attempts, when there is nothing to look at.
pub(super) async fn snapshot(core: &EngineInner, entry: &ExecutionHandle) -> Option<TreeSnapshot> {
    let request = SnapshotRequest {
        foreground: true,
        ..SnapshotRequest::default()
    };
    core.backend.snapshot(entry.id, request).await.ok()
}

/// What the leader is called: the shell, until it executes another program.
pub(super) fn leader_name(snapshot: &TreeSnapshot) -> Option<String> {
    snapshot.members.first().map(|leader| leader.name.clone())
}

/// Who has the terminal instead of the shell.
pub(super) fn foreground_process(snapshot: &TreeSnapshot) -> Option<(&str, u32)> {
    let pid = snapshot.foreground?.pid;
    let (leader, others) = snapshot.members.split_first()?;
    if leader.pid == pid {
        return None;
    }
    let member = others.iter().find(|member| member.pid == pid)?;
    Some((&member.name, pid))
}
