//! Whose of the listening sockets are: by the descriptors of the members of a tree.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ostler_model::Observation;
use ostler_model::evidence::{Listener, UnixListener};
use rustix::fs::{Dir, Mode, OFlags};

use super::diag::TcpRow;
use super::tables::{Inside, Network, Tables};

/// Bytes of a link's target that names a socket: `socket:[` and an inode.
const LINK_BYTES: usize = 64;
/// How long the descriptors of members that do not change need not be walked again, in
/// milliseconds: a socket could be handed to them from outside of the tree.
const REMEMBERED_MS: u64 = 30_000;

/// Where to look, and for what.
#[derive(Debug, Clone, Copy)]
pub(in crate::local) struct Asked<'a> {
    pub(in crate::local) tables: &'a Tables,
    pub(in crate::local) inside: &'a Inside,
    pub(in crate::local) memory: &'a Memory,
    /// The members by pid and start time, the first ones preferred as holders.
    pub(in crate::local) members: &'a [(i32, u64)],
    pub(in crate::local) what: Observation,
}

/// What listens.
#[derive(Debug, Default)]
pub(in crate::local) struct Found {
    pub(in crate::local) listeners: Vec<Listener>,
    pub(in crate::local) unix: Vec<UnixListener>,
}

/// What the last walk through the descriptors of a tree found, where all of it was in our own
/// network namespace.
#[derive(Debug, Default)]
pub(in crate::local) struct Memory(Mutex<Option<Walked>>);

#[derive(Debug)]
struct Walked {
    at: Instant,
    members: Vec<(i32, u64)>,
    /// Listening sockets of the tree.
    holders: Vec<(u64, Descriptor)>,
    /// Those of others, by inode.
    foreign: HashSet<u64>,
}

/// A descriptor of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) pid: i32,
    number: u32,
}

impl Descriptor {
    /// Whether it is this socket now.
    fn is(self, socket: u64) -> bool {
        let link = format!("/proc/{}/fd/{}", self.pid, self.number);
        let mut target = [MaybeUninit::uninit(); LINK_BYTES];
        let read = rustix::fs::readlinkat_raw(rustix::fs::CWD, link, &mut target);
        read.is_ok_and(|(target, _)| inode(target) == Some(socket))
    }
}

/// The sockets that processes in one network namespace hold, with one who holds each.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) network: Network,
    sockets: Vec<(u64, Descriptor)>,
}

impl Held {
    /// Of these processes, by namespace: theirs may differ.
    pub(super) fn by(pids: impl Iterator<Item = i32>) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for pid in pids {
            let sockets = sockets_of(pid);
            if sockets.is_empty() {
                continue;
            }
            let Some(network) = Network::of(pid) else {
                continue;
            };
            let known = found
                .iter_mut()
                .find(|it| it.network.inode == network.inode);
            match known {
                Some(held) => held.sockets.extend(sockets),
                None => found.push(Self { network, sockets }),
            }
        }
        for held in &mut found {
            // Stable: of those who share a socket, the first one asked about stays.
            held.sockets.sort_by_key(|(inode, _)| *inode);
            held.sockets.dedup_by_key(|(inode, _)| *inode);
        }
        found
    }

    /// Who holds a socket.
    pub(super) fn holder(&self, inode: u64) -> Option<Descriptor> {
        let at = self.sockets.binary_search_by_key(&inode, |(it, _)| *it);
        at.ok().map(|at| self.sockets[at].1)
    }
}

/// Looks at them.
pub(in crate::local) fn look(asked: &Asked<'_>) -> Found {
    let mut found = Found::default();
    let pids = || asked.members.iter().map(|(pid, _)| *pid);
    if asked.what.listeners {
        found.listeners = remembered(asked).unwrap_or_else(|| walked(asked));
        found
            .listeners
            .sort_by_key(|it| (it.address.port(), it.inode));
    }
    if asked.what.unix {
        for held in Held::by(pids()) {
            for row in asked.tables.unix(held.network, asked.inside) {
                found
                    .unix
                    .extend(held.holder(row.inode).map(|it| UnixListener {
                        path: row.path,
                        inode: row.inode,
                        pid: it.pid.unsigned_abs(),
                    }));
            }
        }
        found.unix.sort_by_key(|it| it.inode);
    }
    found
}

fn listener(row: &TcpRow, held: Descriptor) -> Listener {
    Listener {
        address: row.address,
        inode: row.inode,
        pid: held.pid.unsigned_abs(),
        waiting: row.waiting,
    }
}

/// What is known already, where nothing can have changed but that sockets were closed: the same
/// processes, every listening socket of the host known as theirs or somebody else's.
fn remembered(asked: &Asked<'_>) -> Option<Vec<Listener>> {
    let memory = asked.memory.0.lock();
    let memory = memory.unwrap_or_else(PoisonError::into_inner);
    let walked = memory.as_ref()?;
    let fresh = walked.at.elapsed() < Duration::from_millis(REMEMBERED_MS);
    if !fresh || walked.members != asked.members || !all_here(asked.members) {
        return None;
    }
    let mut found = Vec::with_capacity(walked.holders.len());
    for row in asked.tables.host().ok()?.iter() {
        if walked.foreign.contains(&row.inode) {
            continue;
        }
        let (_, held) = walked.holders.iter().find(|(it, _)| *it == row.inode)?;
        if !held.is(row.inode) {
            return None;
        }
        found.push(listener(row, *held));
    }
    Some(found)
}

/// Whether all of them are in our own network namespace.
fn all_here(members: &[(i32, u64)]) -> bool {
    let mut networks = members.iter().map(|(pid, _)| Network::of(*pid));
    networks.all(|network| network.is_some_and(Network::is_ours))
}

/// By a walk through every descriptor. The sockets are asked for before it: whoever listens was
/// open then, and is found unless it was closed.
fn walked(asked: &Asked<'_>) -> Vec<Listener> {
    let at = Instant::now();
    let host = asked.tables.host().ok();
    let mut found = Vec::new();
    let mut holders = Vec::new();
    for held in Held::by(asked.members.iter().map(|(pid, _)| *pid)) {
        let rows = match &host {
            Some(rows) if held.network.is_ours() => Arc::clone(rows),
            Some(_) | None => asked.tables.tcp(held.network, asked.inside),
        };
        for row in rows.iter() {
            if let Some(holder) = held.holder(row.inode) {
                found.push(listener(row, holder));
                holders.push((row.inode, holder));
            }
        }
    }
    let known = host.filter(|_| all_here(asked.members)).map(|rows| Walked {
        at,
        members: asked.members.to_vec(),
        foreign: rows
            .iter()
            .map(|row| row.inode)
            .filter(|inode| !holders.iter().any(|(it, _)| it == inode))
            .collect(),
        holders,
    });
    *asked
        .memory
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = known;
    found
}

/// Inodes of the sockets a process holds, with a descriptor of each; none where it may not be
/// looked at.
pub(super) fn sockets_of(pid: i32) -> Vec<(u64, Descriptor)> {
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
        let Some(inode) = link.ok().and_then(|(target, _)| inode(target)) else {
            continue;
        };
        let number = entry.file_name().to_str().ok();
        if let Some(number) = number.and_then(|it| it.parse().ok()) {
            found.push((inode, Descriptor { pid, number }));
        }
    }
    found
}

fn inode(target: &[u8]) -> Option<u64> {
    let digits = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
