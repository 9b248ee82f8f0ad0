//! A look at a running tree: members by descent from its shim, sockets and waits by proc(5).

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use ostler_model::evidence::{Listener, LiveUsage, Member};
use ostler_model::{Evidence, ExecutionId, Observation};

use super::supply::Supply;
use super::{disk, foreground, recovery};
use crate::place::ObserveError;
use crate::shim::marker;
use crate::spec_file::BootStamp;
use crate::sys::proc::{self, Stat};
use crate::sys::role;

/// State `TCP_LISTEN` in `/proc/<pid>/net/tcp`.
const LISTENING: &str = "0A";

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
    let boot = recovery::shim_of(supply, id)?;
    let stats = members(&boot, id);
    let pids: Vec<i32> = stats.iter().map(|(pid, _)| *pid).collect();
    Some(Evidence {
        usage: usage(&stats),
        disk_bytes: if what.disk {
            disk::grown(&supply.execution(id))
        } else {
            None
        },
        listeners: if what.listeners {
            listeners(&pids)
        } else {
            Vec::new()
        },
        foreground: if what.foreground {
            foreground::look(&boot, &stats)
        } else {
            None
        },
        members: stats.iter().map(member).collect(),
    })
}

fn shim_lives(boot: &BootStamp) -> bool {
    let pid = i32::try_from(boot.shim_pid).unwrap_or(0);
    boot.id == proc::boot_id() && !boot.in_process && proc::is_same(pid, boot.shim_start)
}

/// The living, the leader first. A recycled shim carries other trees later, so whoever is
/// found by descent must carry the mark too, or descend from one who does.
fn members(boot: &BootStamp, id: ExecutionId) -> Vec<(i32, Stat)> {
    let mark = marker(id);
    let found = if shim_lives(boot) {
        let shim = i32::try_from(boot.shim_pid).unwrap_or(0);
        under_shim(shim, &mark)
    } else {
        proc::members(&mark, None)
    };
    let mut stats: Vec<(i32, Stat)> = found
        .into_iter()
        .filter_map(|pid| Some((pid, proc::stat(pid)?)))
        .filter(|(_, stat)| stat.is_alive())
        .collect();
    // The leader leads its process group and was born first.
    stats.sort_by_key(|(pid, stat)| (stat.group != *pid, stat.start, *pid));
    stats
}

/// Every descendant but helpers of ours: the cell's warden, the gate and what is under it.
fn under_shim(shim: i32, mark: &[u8]) -> Vec<i32> {
    let children = proc::children(shim);
    let (marked, others): (Vec<i32>, Vec<i32>) = children
        .into_iter()
        .partition(|pid| proc::has_variable(*pid, mark));
    if marked.is_empty() {
        return Vec::new();
    }
    let mut helpers = Vec::new();
    for &pid in &others {
        match proc::helper(pid) {
            Some(name) if name == role::GATE => {
                helpers.push(pid);
                helpers.extend(proc::descendants(pid));
            }
            Some(_) => helpers.push(pid),
            None => {}
        }
    }
    let mut found = proc::descendants(shim);
    found.retain(|pid| !helpers.contains(pid));
    found
}

fn member((pid, stat): &(i32, Stat)) -> Member {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Member {
        pid: pid.unsigned_abs(),
        start: stat.start,
        parent: stat.parent.unsigned_abs(),
        name: name.trim_end().to_owned(),
    }
}

fn usage(stats: &[(i32, Stat)]) -> LiveUsage {
    stats
        .iter()
        .fold(LiveUsage::default(), |sum, (_, stat)| LiveUsage {
            cpu_ticks: sum.cpu_ticks + stat.cpu_ticks,
            resident_pages: sum.resident_pages + stat.resident_pages,
        })
}

/// Listening sockets of these processes, each once. Their network namespaces may differ: each
/// one's tables are read once, through a process that is in it.
fn listeners(pids: &[i32]) -> Vec<Listener> {
    let mut tables: HashMap<PathBuf, Vec<(SocketAddr, u64)>> = HashMap::new();
    let mut found: Vec<Listener> = Vec::new();
    for &pid in pids {
        let inodes = socket_inodes(pid);
        let Ok(network) = fs::read_link(format!("/proc/{pid}/ns/net")) else {
            continue;
        };
        if inodes.is_empty() {
            continue;
        }
        let rows = tables.entry(network).or_insert_with(|| rows_of(pid));
        for &(address, inode) in rows.iter().filter(|(_, inode)| inodes.contains(inode)) {
            if !found.iter().any(|known| known.inode == inode) {
                let pid = pid.unsigned_abs();
                found.push(Listener {
                    address,
                    inode,
                    pid,
                });
            }
        }
    }
    found.sort_by_key(|listener| (listener.address.port(), listener.inode));
    found
}

/// What listens in the network namespace of a process.
fn rows_of(pid: i32) -> Vec<(SocketAddr, u64)> {
    let tables = ["tcp", "tcp6"]
        .map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let rows = tables.iter().flat_map(|text| text.lines().skip(1));
    rows.filter_map(listening).collect()
}

fn socket_inodes(pid: i32) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    let targets = entries
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    targets
        .filter_map(|target| {
            let inode = target.to_str()?.strip_prefix("socket:[")?;
            inode.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

/// Address and inode of one row of `/proc/net/tcp*`, if it listens.
fn listening(row: &str) -> Option<(SocketAddr, u64)> {
    let mut fields = row.split_ascii_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?.parse().ok()?;
    (state == LISTENING).then_some(())?;
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((SocketAddr::new(ip(address)?, port), inode))
}

/// Words of four bytes, each in the machine's own order.
fn ip(hex: &str) -> Option<IpAddr> {
    let words: Option<Vec<[u8; 4]>> = hex
        .as_bytes()
        .chunks(8)
        .map(|word| {
            let word = std::str::from_utf8(word).ok()?;
            Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
        })
        .collect();
    let bytes = words?.concat();
    match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => Some(IpAddr::V4(Ipv4Addr::from(four))),
        Err(_) => {
            let sixteen = <[u8; 16]>::try_from(bytes.as_slice()).ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(sixteen)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_both_families() {
        let four = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  \
                    0 0 12345 1 0000000000000000 100 0 0 10 0";
        let expected = SocketAddr::from(([127, 0, 0, 1], 8080));
        assert_eq!(listening(four), Some((expected, 12345)));
        let six = "   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 \
                   0A 00000000:00000000 00:00000000 00000000 0 0 77 1 0 100 0 0 10 0";
        let expected = SocketAddr::from((Ipv6Addr::LOCALHOST, 80));
        assert_eq!(listening(six), Some((expected, 77)));
        assert_eq!(listening(&four.replace(" 0A ", " 01 ")), None);
        assert_eq!(listening("nonsense"), None);
    }
}
