//! The listening sockets of a process tree, debounced.

use std::time::Duration;

use super::input::ListeningSocket;
use super::limits::{CONFIRM, CONFIRMS_MAX, GONE, SOCKETS_MAX, UNIX_MAX};

/// The scans of one socket.
#[derive(Debug, Clone)]
struct Tracked<T> {
    value: T,
    confirmed: Option<Duration>,
    missing: Option<MissingScans>,
}

/// The scans in a row that did not show a socket.
#[derive(Debug, Clone, Copy)]
struct MissingScans {
    since: Duration,
    scans: u32,
}

/// A socket that two scans have shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfirmedListener<'a> {
    pub(super) socket: &'a ListeningSocket,
    /// Since when it is confirmed.
    pub(super) since: Duration,
}

/// All sockets of a tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Listeners {
    sockets: Vec<Tracked<ListeningSocket>>,
    unix: Vec<Tracked<String>>,
    scanned_at: Option<Duration>,
    confirm_scans: u32,
    members: u32,
}

impl Listeners {
    /// Handles a scan. A socket is confirmed in its second scan, and gone when two did not show it
    /// and it was missing for `gone_after`.
    pub(super) fn scan(
        &mut self,
        at: Duration,
        sockets: Vec<ListeningSocket>,
        unix: Vec<String>,
        gone: Duration,
    ) {
        self.scanned_at = Some(at);
        let same = |one: &ListeningSocket, other: &ListeningSocket| {
            one.inode == other.inode && one.address == other.address
        };
        update_tracked(&mut self.sockets, sockets, at, SOCKETS_MAX, same);
        update_tracked(&mut self.unix, unix, at, UNIX_MAX, PartialEq::eq);
        self.sockets.retain(|it| !it.is_gone(at, gone));
        self.unix.retain(|it| !it.is_gone(at, gone));
        self.confirm_scans = if self.is_settled() {
            0
        } else {
            self.confirm_scans + 1
        };
    }

    /// Updates the process count; returns whether it changed.
    pub(super) fn update_members(&mut self, members: u32) -> bool {
        std::mem::replace(&mut self.members, members) != members
    }

    /// The process count of the last scan.
    pub(super) fn members(&self) -> u32 {
        self.members
    }

    /// The confirmed sockets.
    pub(super) fn all(&self) -> impl Iterator<Item = ConfirmedListener<'_>> {
        self.sockets.iter().filter_map(|it| {
            let since = it.confirmed?;
            Some(ConfirmedListener {
                socket: &it.value,
                since,
            })
        })
    }

    /// Paths of the confirmed unix sockets.
    pub(super) fn unix(&self) -> impl Iterator<Item = &str> {
        let confirmed = self.unix.iter().filter(|it| it.confirmed.is_some());
        confirmed.map(|it| it.value.as_str())
    }

    /// Every inode that is not gone, confirmed or not.
    pub(super) fn inodes(&self) -> Vec<u64> {
        self.sockets.iter().map(|it| it.value.inode).collect()
    }

    /// Whether the last scan showed a socket with this inode and an empty accept queue.
    pub(super) fn is_drained(&self, inode: u64) -> bool {
        let found = self.sockets.iter().find(|it| it.value.inode == inode);
        found.is_some_and(|it| it.missing.is_none() && it.value.waiting == 0)
    }

    /// Whether a socket on this port existed in the last scan, or was gone for a short time only: a
    /// new one replaces another.
    pub(super) fn has_port(&self, port: u16) -> bool {
        let on = |it: &&Tracked<ListeningSocket>| it.value.address.port() == port;
        self.sockets.iter().any(|it| on(&it))
    }

    /// The time of the last scan.
    pub(super) fn scanned_at(&self) -> Option<Duration> {
        self.scanned_at
    }

    /// When a scan is needed to confirm what the last ones showed.
    pub(super) fn confirm_at(&self, gone: Duration) -> Option<Duration> {
        let scanned_at = self.scanned_at?;
        let confirm = scanned_at + CONFIRM;
        let new = (!self.is_settled() && self.confirm_scans <= CONFIRMS_MAX).then_some(confirm);
        let missing = self.sockets.iter().filter_map(|it| it.missing);
        let missing = missing.chain(self.unix.iter().filter_map(|it| it.missing));
        missing
            .map(|it| confirm.max(it.since + gone))
            .chain(new)
            .min()
    }

    fn is_settled(&self) -> bool {
        let new = self.sockets.iter().any(|it| it.confirmed.is_none());
        !new && self.unix.iter().all(|it| it.confirmed.is_some())
    }
}

impl<T> Tracked<T> {
    fn is_gone(&self, at: Duration, gone: Duration) -> bool {
        self.missing.is_some_and(|it| {
            self.confirmed.is_none() || (it.scans >= 2 && at.saturating_sub(it.since) >= gone)
        })
    }
}

/// Updates the tracked sockets with a scan; beyond `limit`, new ones are ignored.
fn update_tracked<T>(
    tracked: &mut Vec<Tracked<T>>,
    current: Vec<T>,
    at: Duration,
    limit: usize,
    same: impl Fn(&T, &T) -> bool,
) {
    let mut current: Vec<Option<T>> = current.into_iter().map(Some).collect();
    for one in tracked.iter_mut() {
        let slot = current
            .iter_mut()
            .find(|it| it.as_ref().is_some_and(|it| same(it, &one.value)));
        if let Some(it) = slot.and_then(Option::take) {
            one.value = it;
            one.missing = None;
            one.confirmed = one.confirmed.or(Some(at));
        } else {
            let before = one.missing.unwrap_or(MissingScans {
                since: at,
                scans: 0,
            });
            one.missing = Some(MissingScans {
                scans: before.scans + 1,
                ..before
            });
        }
    }
    for it in current.into_iter().flatten() {
        if tracked.len() < limit && !tracked.iter().any(|one| same(&it, &one.value)) {
            tracked.push(Tracked {
                value: it,
                confirmed: None,
                missing: None,
            });
        }
    }
}

/// How long a socket is missing before it is gone.
pub(super) fn gone_after(ready: bool) -> Duration {
    if ready { GONE } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::scan_schedule::ms;

    fn socket(port: u16, inode: u64) -> ListeningSocket {
        ListeningSocket {
            address: ([127, 0, 0, 1], port).into(),
            inode,
            pid: 42,
            process: "node".into(),
            stopped: false,
            waiting: 0,
        }
    }

    fn look(listeners: &mut Listeners, at: u64, inodes: &[u64]) -> Vec<u64> {
        let sockets = inodes.iter().map(|inode| socket(3000, *inode)).collect();
        listeners.scan(ms(at), sockets, Vec::new(), Duration::ZERO);
        listeners.all().map(|it| it.socket.inode).collect()
    }

    #[test]
    fn real_in_the_second_scan() {
        let mut listeners = Listeners::default();
        assert_eq!(look(&mut listeners, 25, &[7]), [0; 0]);
        assert_eq!(listeners.confirm_at(ms(0)), Some(ms(33)));
        assert_eq!(look(&mut listeners, 33, &[7]), [7]);
        assert_eq!(listeners.confirm_at(ms(0)), None);
        assert_eq!(look(&mut listeners, 58, &[]), [7]);
        assert!(!listeners.is_drained(7));
        assert_eq!(listeners.confirm_at(ms(0)), Some(ms(66)));
        assert_eq!(look(&mut listeners, 66, &[]), [0; 0]);
    }

    #[test]
    fn transient_ones_are_never_real() {
        let mut listeners = Listeners::default();
        let mut quick = 0;
        for round in 0..100 {
            assert_eq!(look(&mut listeners, 25 * round, &[round]), [0; 0]);
            quick += u32::from(listeners.confirm_at(ms(0)).is_some());
        }
        assert_eq!(quick, CONFIRMS_MAX);
    }

    #[test]
    fn missing_for_a_while_is_not_gone() {
        let mut listeners = Listeners::default();
        let scan = |listeners: &mut Listeners, at: u64, there: bool| {
            let sockets = if there {
                vec![socket(1, 1)]
            } else {
                Vec::new()
            };
            listeners.scan(ms(at), sockets, Vec::new(), gone_after(true));
            listeners.all().count()
        };
        let seen: Vec<usize> = [
            (0, true),
            (8, true),
            (100, false),
            (200, false),
            (300, true),
        ]
        .into_iter()
        .map(|(at, there)| scan(&mut listeners, at, there))
        .collect();
        assert_eq!(seen, [0, 1, 1, 1, 1]);
        assert_eq!(scan(&mut listeners, 2_000, false), 1);
        assert_eq!(listeners.confirm_at(gone_after(true)), Some(ms(3_000)));
        assert_eq!(scan(&mut listeners, 3_000, false), 0);
    }

    #[test]
    fn bounded() {
        let mut listeners = Listeners::default();
        for extra in [0, 1, 500] {
            let all: Vec<u64> = (0..SOCKETS_MAX as u64 + extra).collect();
            look(&mut listeners, 1, &all);
            assert_eq!(look(&mut listeners, 2, &all).len(), SOCKETS_MAX);
        }
        let unix: Vec<String> = (0..=UNIX_MAX).map(|it| it.to_string()).collect();
        listeners.scan(ms(3), Vec::new(), unix.clone(), ms(0));
        listeners.scan(ms(4), Vec::new(), unix, ms(0));
        assert_eq!(listeners.unix().count(), UNIX_MAX);
    }
}
