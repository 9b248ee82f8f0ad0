//! Finds the listening sockets of a tree by the descriptors of its members.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ostler_model::SnapshotRequest;
use ostler_model::snapshot::{TcpListenerInfo, UnixListenerInfo};
use parking_lot::Mutex;
use rustix::fs::{Dir, Mode, OFlags};

use super::diag::TcpRow;
use super::listen_tables::{ListenTables, NetnsDiagCache, NetworkNamespace};

/// Bytes of a link's target that names a socket: `socket:[` and an inode.
const LINK_BYTES: usize = 64;
/// How long the descriptors of unchanged members are not scanned again, in milliseconds: a socket
/// could be passed to them from outside the tree.
const CACHE_MS: u64 = 30_000;

/// The tree and the tables to search.
#[derive(Debug, Clone, Copy)]
pub(in crate::local) struct SocketQuery<'a> {
    pub(in crate::local) tables: &'a ListenTables,
    pub(in crate::local) netns_diags: &'a NetnsDiagCache,
    pub(in crate::local) cache: &'a SocketScanCache,
    /// The members by pid and start time, the first ones preferred as holders.
    pub(in crate::local) members: &'a [(i32, u64)],
    pub(in crate::local) request: SnapshotRequest,
}

/// The result.
#[derive(Debug, Default)]
pub(in crate::local) struct ListeningSockets {
    pub(in crate::local) listeners: Vec<TcpListenerInfo>,
    pub(in crate::local) unix: Vec<UnixListenerInfo>,
}

/// The result of the last scan of a tree's descriptors, where all members were in our own network
/// namespace.
#[derive(Debug, Default)]
pub(in crate::local) struct SocketScanCache(Mutex<Option<SocketScan>>);

#[derive(Debug)]
struct SocketScan {
    scanned_at: Instant,
    members: Vec<(i32, u64)>,
    /// Listening sockets of the tree.
    owners: Vec<(u64, ProcessFd)>,
    /// Listening sockets of other processes, by inode.
    foreign: HashSet<u64>,
}

/// A descriptor of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessFd {
    pub(super) pid: i32,
    number: u32,
}

impl ProcessFd {
    /// Whether it refers to this socket now.
    fn is(self, socket: u64) -> bool {
        let link = format!("/proc/{}/fd/{}", self.pid, self.number);
        let mut target = [MaybeUninit::uninit(); LINK_BYTES];
        let read = rustix::fs::readlinkat_raw(rustix::fs::CWD, link, &mut target);
        read.is_ok_and(|(target, _)| parse_socket_inode(target) == Some(socket))
    }
}

/// The sockets that processes in one network namespace hold, with one holder each.
#[derive(Debug)]
pub(super) struct NetnsSockets {
    pub(super) network: NetworkNamespace,
    sockets: Vec<(u64, ProcessFd)>,
}

impl NetnsSockets {
    /// Groups these processes by namespace, which may differ.
    pub(super) fn group_by_netns(pids: impl Iterator<Item = i32>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for pid in pids {
            let sockets = sockets_of(pid);
            if sockets.is_empty() {
                continue;
            }
            let Some(network) = NetworkNamespace::of(pid) else {
                continue;
            };
            let existing = groups
                .iter_mut()
                .find(|it| it.network.inode == network.inode);
            match existing {
                Some(group) => group.sockets.extend(sockets),
                None => groups.push(Self { network, sockets }),
            }
        }
        for group in &mut groups {
            // A stable sort: of the processes that share a socket, the first one stays.
            group.sockets.sort_by_key(|(inode, _)| *inode);
            group.sockets.dedup_by_key(|(inode, _)| *inode);
        }
        groups
    }

    /// The holder of a socket.
    pub(super) fn owner(&self, inode: u64) -> Option<ProcessFd> {
        let at = self.sockets.binary_search_by_key(&inode, |(it, _)| *it);
        at.ok().map(|at| self.sockets[at].1)
    }
}

/// Finds the listeners.
pub(in crate::local) fn find_listeners(query: &SocketQuery<'_>) -> ListeningSockets {
    let mut listening = ListeningSockets::default();
    let pids = || query.members.iter().map(|(pid, _)| *pid);
    if query.request.listeners {
        listening.listeners = cached_listeners(query).unwrap_or_else(|| scan_listeners(query));
        listening
            .listeners
            .sort_by_key(|it| (it.address.port(), it.inode));
    }
    if query.request.unix {
        for group in NetnsSockets::group_by_netns(pids()) {
            for row in query.tables.unix(group.network, query.netns_diags) {
                listening
                    .unix
                    .extend(group.owner(row.inode).map(|it| UnixListenerInfo {
                        path: row.path,
                        inode: row.inode,
                        pid: it.pid.unsigned_abs(),
                    }));
            }
        }
        listening.unix.sort_by_key(|it| it.inode);
    }
    listening
}

fn listener(row: &TcpRow, fd: ProcessFd) -> TcpListenerInfo {
    TcpListenerInfo {
        address: row.address,
        inode: row.inode,
        pid: fd.pid.unsigned_abs(),
        waiting: row.accept_queue,
    }
}

/// The cached result, valid where nothing but closing can have happened: the same processes, and
/// every listening socket of the host known as theirs or another's.
fn cached_listeners(query: &SocketQuery<'_>) -> Option<Vec<TcpListenerInfo>> {
    let cache = query.cache.0.lock();
    let scan = cache.as_ref()?;
    let fresh = scan.scanned_at.elapsed() < Duration::from_millis(CACHE_MS);
    if !fresh || scan.members != query.members || !all_in_own_netns(query.members) {
        return None;
    }
    let mut listeners = Vec::with_capacity(scan.owners.len());
    for row in query.tables.own_tcp().ok()?.iter() {
        if scan.foreign.contains(&row.inode) {
            continue;
        }
        let (_, fd) = scan.owners.iter().find(|(it, _)| *it == row.inode)?;
        if !fd.is(row.inode) {
            return None;
        }
        listeners.push(listener(row, *fd));
    }
    Some(listeners)
}

/// Whether all of them are in our own network namespace.
fn all_in_own_netns(members: &[(i32, u64)]) -> bool {
    let mut networks = members.iter().map(|(pid, _)| NetworkNamespace::of(*pid));
    networks.all(|network| network.is_some_and(NetworkNamespace::is_own))
}

/// Scans every descriptor. The sockets are read before that: a listener was open then, and is found
/// unless it was closed.
fn scan_listeners(query: &SocketQuery<'_>) -> Vec<TcpListenerInfo> {
    let scanned_at = Instant::now();
    let host = query.tables.own_tcp().ok();
    let mut listeners = Vec::new();
    let mut owners = Vec::new();
    for group in NetnsSockets::group_by_netns(query.members.iter().map(|(pid, _)| *pid)) {
        let rows = match &host {
            Some(rows) if group.network.is_own() => Arc::clone(rows),
            Some(_) | None => query.tables.tcp(group.network, query.netns_diags),
        };
        for row in rows.iter() {
            if let Some(owner) = group.owner(row.inode) {
                listeners.push(listener(row, owner));
                owners.push((row.inode, owner));
            }
        }
    }
    let scan = host
        .filter(|_| all_in_own_netns(query.members))
        .map(|rows| SocketScan {
            scanned_at,
            members: query.members.to_vec(),
            foreign: rows
                .iter()
                .map(|row| row.inode)
                .filter(|inode| !owners.iter().any(|(it, _)| it == inode))
                .collect(),
            owners,
        });
    *query.cache.0.lock() = scan;
    listeners
}

/// Inodes of the sockets a process holds, with a descriptor of each; none where it may not be
/// inspected.
pub(super) fn sockets_of(pid: i32) -> Vec<(u64, ProcessFd)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = format!("/proc/{pid}/fd");
    let Ok(directory) = rustix::fs::open(path, flags, Mode::empty()) else {
        return Vec::new();
    };
    let Ok(entries) = Dir::read_from(&directory) else {
        return Vec::new();
    };
    let mut target = [MaybeUninit::uninit(); LINK_BYTES];
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let link = rustix::fs::readlinkat_raw(&directory, entry.file_name(), &mut target);
        let Some(inode) = link.ok().and_then(|(target, _)| parse_socket_inode(target)) else {
            continue;
        };
        let number = entry.file_name().to_str().ok();
        if let Some(number) = number.and_then(|it| it.parse().ok()) {
            found.push((inode, ProcessFd { pid, number }));
        }
    }
    found
}

fn parse_socket_inode(target: &[u8]) -> Option<u64> {
    let digits = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
