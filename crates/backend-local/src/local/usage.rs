//! Reads what running trees use, for the resource monitor: all trees that are due in one pass.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use ostler_backend::UsageReading;
use ostler_model::{ExecutionId, Timestamp};
use ostler_sys::process_stat::ProcessStat;

use super::shim_manager::ShimManager;
use super::stopped_shim::continue_if_stopped;
use crate::sys::netns;
use crate::sys::proc::{self, ProcessWalk};

/// Reads the counters of these executions, on a blocking thread; none where one has no processes.
pub(super) async fn read(
    shims: Arc<ShimManager>,
    ids: Vec<ExecutionId>,
) -> Vec<Option<UsageReading>> {
    let (shared, count) = (Arc::clone(&shims), ids.len());
    let read_all = move || {
        let walk = ProcessWalk::default();
        ids.into_iter()
            .map(|id| read_one(&shared, id, &walk))
            .collect::<Vec<_>>()
    };
    let mut readings = shims.blocking(read_all).await;
    // A cancelled pass has read nothing.
    readings.resize(count, None);
    readings
}

fn read_one(shims: &ShimManager, id: ExecutionId, walk: &ProcessWalk) -> Option<UsageReading> {
    let tree = shims.process_trees.info(id)?;
    // Its timeouts, and input that is on its way, wait for it.
    continue_if_stopped(tree.shim_pid().unsigned_abs());
    let processes = shims.process_trees.processes(&tree, id, walk);
    let living = || processes.iter().filter(|(_, stat)| stat.is_alive());
    let leader = living().next()?.0;
    let pages = living().map(|(_, stat)| stat.resident_pages).sum::<u64>();
    let (read_bytes, written_bytes) = storage_bytes(&processes).unzip();
    let (received_bytes, sent_bytes) = network_bytes(leader).unzip();
    Some(UsageReading {
        at: Timestamp::now(),
        instant: Instant::now(),
        cpu_us: tree.cpu_us(&processes),
        memory_bytes: pages.saturating_mul(rustix::param::page_size() as u64),
        read_bytes,
        written_bytes,
        received_bytes,
        sent_bytes,
        processes: u32::try_from(living().count()).unwrap_or(u32::MAX),
    })
}

/// None where one of the processes may not be inspected: part of a sum is no sum.
fn storage_bytes(processes: &[(i32, ProcessStat)]) -> Option<(u64, u64)> {
    let mut sum = None;
    for (pid, _) in processes {
        match proc::storage_bytes(*pid) {
            Ok((read, written)) => {
                let (all_read, all_written) = sum.unwrap_or_default();
                sum = Some((
                    read.saturating_add(all_read),
                    written.saturating_add(all_written),
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
            // It has ended meanwhile, or the kernel does not count.
            Err(_) => {}
        }
    }
    sum
}

/// None in the network namespace of the host, which everybody shares.
fn network_bytes(leader: i32) -> Option<(u64, u64)> {
    if netns::netns_of(leader)? == netns::own_netns()? {
        return None;
    }
    proc::network_bytes(leader)
}
