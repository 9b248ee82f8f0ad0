//! Which peers are accepted when few descriptors are left. Pure.

use ostler_sys::open_files::EMERGENCY_FDS;

/// More free descriptors than this change no decision while no connection is served.
const ENOUGH_FILES: u64 = 6;
/// Descriptors a request has open at once, besides its connection: the execution's directory and
/// two files of a segment.
const FILES_PER_REQUEST: u64 = 3;
/// The most connections expected to read at the same time.
const MAX_READERS: u64 = 32;
/// Descriptors a long request needs besides its connection: the execution's directory, the two
/// files of the segment being read, and one spare.
pub(super) const LONG_REQUEST_FILES: u64 = 4;
/// Descriptors of a stdio proxy: its connection, both its streams and the log.
const PROXY_FILES: u64 = 4;

/// The kind of peer that connects to a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerKind {
    /// Programs of this user, over the Unix socket: they must always be able to stop something.
    Local,
    /// All others, over TCP.
    Network,
    /// Stdio proxies of MCP clients, which stay connected.
    StdioProxy,
}

/// How a waiting peer is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is accepted.
    Unrestricted,
    /// It is accepted for one short request, one such peer at a time.
    SingleRequest,
    /// It stays in the accept queue.
    Wait,
}

/// How many free descriptors to count with this many unrestricted connections.
pub(super) const fn files_to_count(unrestricted: u64) -> u64 {
    ENOUGH_FILES + FILES_PER_REQUEST * expected_readers(unrestricted)
}

/// Connections expected to read at the same time, bounded by [`MAX_READERS`].
const fn expected_readers(unrestricted: u64) -> u64 {
    if unrestricted < MAX_READERS {
        unrestricted
    } else {
        MAX_READERS
    }
}

/// Decides from the available descriptors and the number of unrestricted connections.
pub(super) const fn decide(peers: PeerKind, available: u64, unrestricted: u64) -> Admission {
    // The remainder of `unrestricted_need` after an accept is enough for one long request and for a
    // local single one; TCP peers and stdio proxies leave that much to the Unix socket.
    let (unrestricted_need, single_need) = match peers {
        PeerKind::Local => (1 + LONG_REQUEST_FILES, Some(EMERGENCY_FDS)),
        PeerKind::Network => (2 + LONG_REQUEST_FILES, Some(2 + EMERGENCY_FDS)),
        PeerKind::StdioProxy => (PROXY_FILES + EMERGENCY_FDS, None),
    };
    match single_need {
        _ if available
            >= unrestricted_need + FILES_PER_REQUEST * expected_readers(unrestricted) =>
        {
            Admission::Unrestricted
        }
        Some(need) if available >= need => Admission::SingleRequest,
        Some(_) | None => Admission::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_room_everybody_is_accepted_and_the_last_two_are_for_the_unix_socket() {
        use Admission::{SingleRequest, Unrestricted, Wait};
        let all = [PeerKind::Local, PeerKind::Network, PeerKind::StdioProxy];
        for (available, expected) in [
            (0, [Wait, Wait, Wait]),
            (1, [Wait, Wait, Wait]),
            (2, [SingleRequest, Wait, Wait]),
            (3, [SingleRequest, Wait, Wait]),
            (4, [SingleRequest, SingleRequest, Wait]),
            (5, [Unrestricted, SingleRequest, Wait]),
            (6, [Unrestricted, Unrestricted, Unrestricted]),
            (ENOUGH_FILES, [Unrestricted, Unrestricted, Unrestricted]),
            (u64::MAX, [Unrestricted, Unrestricted, Unrestricted]),
        ] {
            let decided = all.map(|peers| decide(peers, available, 0));
            assert_eq!(decided, expected, "{available}");
        }
    }

    #[test]
    fn who_was_accepted_before_can_still_read() {
        assert_eq!(decide(PeerKind::Local, 7, 1), Admission::SingleRequest);
        assert_eq!(decide(PeerKind::Local, 8, 1), Admission::Unrestricted);
        assert_eq!(decide(PeerKind::StdioProxy, 8, 1), Admission::Wait);
        for roomy in [0, 1, 7, MAX_READERS, u64::MAX] {
            for peers in [PeerKind::Local, PeerKind::Network, PeerKind::StdioProxy] {
                assert_eq!(
                    decide(peers, files_to_count(roomy), roomy),
                    Admission::Unrestricted
                );
            }
        }
    }
}
