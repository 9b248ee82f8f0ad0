//! Who is accepted where few descriptors are left. Pure.

use ostler_engine::open_files::HELD_BACK;

/// More than so many free descriptors change no decision while nobody is served.
const ENOUGH: u64 = 6;
/// What a request has open at once, besides its connection: the execution's directory and two
/// files of a segment.
const FILES: u64 = 3;
/// Connections that are expected to read at the same time, at most.
const READERS_MAX: u64 = 32;
/// What a request that lasts needs besides its connection: the execution's directory and the two
/// files of a segment that is read, and one for somebody else's file.
pub(super) const LONG: u64 = 4;
/// What a front takes: its connection, both its streams and the log.
const FRONT: u64 = 4;

/// Who connects to a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peers {
    /// Programs of this user, over the Unix socket: they must always be able to stop something.
    Local,
    /// Everybody else, over TCP.
    Network,
    /// Fronts of MCP clients, which stay.
    Front,
}

/// What becomes of a peer that waits to be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is accepted.
    Room,
    /// It is accepted when nobody else is served this way, for one short request.
    InTurn,
    /// It waits.
    Wait,
}

/// How many are to be looked for where so many connections were accepted with room.
pub(super) const fn enough(roomy: u64) -> u64 {
    ENOUGH + FILES * counted(roomy)
}

/// Beyond these many nobody is counted on to read at the same time.
const fn counted(roomy: u64) -> u64 {
    if roomy < READERS_MAX {
        roomy
    } else {
        READERS_MAX
    }
}

/// Decides with so many descriptors available, and so many connections accepted with room.
pub(super) const fn decide(peers: Peers, available: u64, roomy: u64) -> Admission {
    // What is left of `room` after an accept is enough for one request that lasts and for a
    // local one in turn; what comes over TCP or stays leaves that much to the Unix socket.
    let (room, in_turn) = match peers {
        Peers::Local => (1 + LONG, Some(HELD_BACK)),
        Peers::Network => (2 + LONG, Some(2 + HELD_BACK)),
        Peers::Front => (FRONT + HELD_BACK, None),
    };
    match in_turn {
        _ if available >= room + FILES * counted(roomy) => Admission::Room,
        Some(in_turn) if available >= in_turn => Admission::InTurn,
        Some(_) | None => Admission::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_room_everybody_is_accepted_and_the_last_two_are_for_the_unix_socket() {
        use Admission::{InTurn, Room, Wait};
        let all = [Peers::Local, Peers::Network, Peers::Front];
        for (available, expected) in [
            (0, [Wait, Wait, Wait]),
            (1, [Wait, Wait, Wait]),
            (2, [InTurn, Wait, Wait]),
            (3, [InTurn, Wait, Wait]),
            (4, [InTurn, InTurn, Wait]),
            (5, [Room, InTurn, Wait]),
            (6, [Room, Room, Room]),
            (ENOUGH, [Room, Room, Room]),
            (u64::MAX, [Room, Room, Room]),
        ] {
            let decided = all.map(|peers| decide(peers, available, 0));
            assert_eq!(decided, expected, "{available}");
        }
    }

    #[test]
    fn who_was_accepted_before_can_still_read() {
        assert_eq!(decide(Peers::Local, 7, 1), Admission::InTurn);
        assert_eq!(decide(Peers::Local, 8, 1), Admission::Room);
        assert_eq!(decide(Peers::Front, 8, 1), Admission::Wait);
        for roomy in [0, 1, 7, READERS_MAX, u64::MAX] {
            for peers in [Peers::Local, Peers::Network, Peers::Front] {
                assert_eq!(decide(peers, enough(roomy), roomy), Admission::Room);
            }
        }
    }
}
