//! The network namespace in which a tree can be connected to.

use super::listen_tables::{ListenTables, NetnsDiagCache, NetworkNamespace};
use super::tree_listeners::NetnsSockets;

/// Where a socket for a connection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::local) enum ConnectNamespace {
    /// In the daemon's own namespace.
    Own,
    /// In that of the process with this pid.
    OfProcess(i32),
}

/// The namespace in which a member listens on a port, else the first member's; none where no
/// member is left.
pub(in crate::local) fn connect_namespace(
    tables: &ListenTables,
    diags: &NetnsDiagCache,
    members: &[i32],
    port: u16,
) -> Option<ConnectNamespace> {
    let namespaces = members.iter().filter_map(|pid| NetworkNamespace::of(*pid));
    let namespaces: Vec<NetworkNamespace> = namespaces.collect();
    let first = *namespaces.first()?;
    if namespaces.iter().all(|it| it.inode == first.inode) {
        return Some(first.into());
    }
    let is_listening = |sockets: &NetnsSockets| {
        let rows = tables.tcp(sockets.network, diags);
        let mut rows = rows.iter().filter(|it| it.address.port() == port);
        rows.any(|it| sockets.owner(it.inode).is_some())
    };
    let all = NetnsSockets::group_by_netns(members.iter().copied());
    let listening = all.iter().find(|it| is_listening(it)).map(|it| it.network);
    Some(listening.unwrap_or(first).into())
}

impl From<NetworkNamespace> for ConnectNamespace {
    fn from(netns: NetworkNamespace) -> Self {
        if netns.is_own() {
            Self::Own
        } else {
            Self::OfProcess(netns.pid)
        }
    }
}
