//! Inspects a running tree: its members, what they use, what they listen on and wait for.

use std::sync::Arc;

use ostler_backend::SnapshotError;
use ostler_model::snapshot::{LiveUsage, TreeMember};
use ostler_model::{ExecutionId, SnapshotRequest, TreeSnapshot};
use ostler_sys::process_stat::ProcessStat;

use super::shim_manager::ShimManager;
use super::sockets::{self, ListeningSockets, SocketQuery};
use super::tree_members::LiveProcess;
use super::{disk_quota, input_waiters};
use crate::sys::proc;

/// Inspects the tree of an execution. The walk runs on a blocking thread.
pub(super) async fn capture(
    shims: Arc<ShimManager>,
    id: ExecutionId,
    request: SnapshotRequest,
) -> Result<TreeSnapshot, SnapshotError> {
    let shared = Arc::clone(&shims);
    let captured = shims
        .blocking(move || capture_blocking(&shared, id, request))
        .await;
    captured.ok_or(SnapshotError::Unknown(id))
}

fn capture_blocking(
    shims: &ShimManager,
    id: ExecutionId,
    request: SnapshotRequest,
) -> Option<TreeSnapshot> {
    let tree = shims.process_trees.info(id)?;
    let processes = shims.process_trees.live_members(&tree, id);
    let sockets_found = if request.listeners || request.unix {
        let ids: Vec<(i32, u64)> = processes.iter().map(|it| (it.pid, it.stat.start)).collect();
        sockets::find_listeners(&SocketQuery {
            tables: &shims.tables,
            netns_diags: &tree.netns_diags,
            cache: &tree.socket_cache,
            members: &ids,
            request,
        })
    } else {
        ListeningSockets::default()
    };
    let growth = if request.disk {
        let members: Vec<i32> = processes.iter().map(|it| it.pid).collect();
        disk_quota::growth(&shims.execution_dir(id), &members)
    } else {
        None
    };
    let (disk_bytes, disk_unmeasured) = growth.map_or((None, None), |growth| {
        (Some(growth.bytes), growth.unmeasured)
    });
    Some(TreeSnapshot {
        usage: usage(&processes),
        disk_bytes,
        disk_unmeasured,
        listeners: sockets_found.listeners,
        unix: sockets_found.unix,
        foreground: if request.foreground {
            let stats: Vec<(i32, ProcessStat)> =
                processes.iter().map(|it| (it.pid, it.stat)).collect();
            input_waiters::inspect(&tree.shim, &stats)
        } else {
            None
        },
        members: processes.into_iter().map(to_member).collect(),
    })
}

fn to_member(process: LiveProcess) -> TreeMember {
    TreeMember {
        pid: process.pid.unsigned_abs(),
        start: process.stat.start,
        parent: process.stat.parent.unsigned_abs(),
        stopped: process.stat.is_stopped(),
        name: proc::display_name(process.pid, process.name),
    }
}

fn usage(processes: &[LiveProcess]) -> LiveUsage {
    processes
        .iter()
        .fold(LiveUsage::default(), |sum, it| LiveUsage {
            cpu_ticks: sum.cpu_ticks + it.stat.cpu_ticks,
            resident_pages: sum.resident_pages + it.stat.resident_pages,
        })
}
