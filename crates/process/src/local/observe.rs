//! A look at a running tree: its members, what they use, what they listen on and wait for.

use std::sync::Arc;

use ostler_model::evidence::{LiveUsage, Member};
use ostler_model::{Evidence, ExecutionId, Observation};

use super::members::{self, Living};
use super::sockets::{self, Asked, Found};
use super::supply::Supply;
use super::{disk, foreground};
use crate::place::ObserveError;
use crate::sys::proc::{self, Stat};

/// Looks at the tree of an execution. The walk runs beside the runtime.
pub(super) async fn look(
    supply: Arc<Supply>,
    id: ExecutionId,
    what: Observation,
) -> Result<Evidence, ObserveError> {
    let asked = Arc::clone(&supply);
    let seen = supply.blocking(move || look_now(&asked, id, what)).await;
    seen.ok_or(ObserveError::Unknown(id))
}

fn look_now(supply: &Supply, id: ExecutionId, what: Observation) -> Option<Evidence> {
    let known = members::known(supply, id)?;
    let living = members::of(supply, &known, id);
    let found = if what.listeners || what.unix {
        let ids: Vec<(i32, u64)> = living.iter().map(|it| (it.pid, it.stat.start)).collect();
        sockets::look(&Asked {
            tables: &supply.tables,
            inside: &known.inside,
            memory: &known.sockets,
            members: &ids,
            what,
        })
    } else {
        Found::default()
    };
    Some(Evidence {
        usage: usage(&living),
        disk_bytes: if what.disk {
            let members: Vec<i32> = living.iter().map(|it| it.pid).collect();
            disk::grown(&supply.execution(id), &members)
        } else {
            None
        },
        listeners: found.listeners,
        unix: found.unix,
        foreground: if what.foreground {
            let stats: Vec<(i32, Stat)> = living.iter().map(|it| (it.pid, it.stat)).collect();
            foreground::look(&known.boot, &stats)
        } else {
            None
        },
        members: living.into_iter().map(member).collect(),
    })
}

fn member(living: Living) -> Member {
    Member {
        pid: living.pid.unsigned_abs(),
        start: living.stat.start,
        parent: living.stat.parent.unsigned_abs(),
        stopped: living.stat.is_stopped(),
        name: proc::shown_name(living.pid, living.name),
    }
}

fn usage(living: &[Living]) -> LiveUsage {
    living
        .iter()
        .fold(LiveUsage::default(), |sum, it| LiveUsage {
            cpu_ticks: sum.cpu_ticks + it.stat.cpu_ticks,
            resident_pages: sum.resident_pages + it.stat.resident_pages,
        })
}
