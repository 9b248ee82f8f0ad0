//! Counts the connections of each address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

use super::CONNECTIONS;

/// The most connections of one address, so that others can connect. It does not apply to loopback,
/// where all clients share one address.
pub const CONNECTIONS_PER_ADDRESS: usize = CONNECTIONS / 4;

/// The connections of each address.
#[derive(Debug, Default)]
pub(super) struct AddressCounts(Mutex<HashMap<IpAddr, usize>>);

/// A connection of an address, until this is dropped.
#[derive(Debug)]
pub(super) struct AddressGuard {
    counts: Arc<AddressCounts>,
    address: IpAddr,
}

impl AddressCounts {
    /// Counts a connection; none where the address has reached the limit.
    pub(super) fn acquire(self: &Arc<Self>, peer: IpAddr) -> Option<AddressGuard> {
        let address = address_block(peer.to_canonical());
        let mut counts = self.0.lock();
        let count = counts.entry(address).or_default();
        if *count >= CONNECTIONS_PER_ADDRESS && !address.is_loopback() {
            return None;
        }
        *count += 1;
        Some(AddressGuard {
            counts: Arc::clone(self),
            address,
        })
    }
}

/// The block of one host: an IPv4 address, or an IPv6 network of 64 bits (RFC 6177).
pub(super) fn address_block(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) if !address.is_loopback() => {
            let prefix = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
        IpAddr::V4(_) | IpAddr::V6(_) => address,
    }
}

impl Drop for AddressGuard {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.counts.0.lock().entry(self.address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn one_address_has_a_share_and_loopback_has_all() {
        let all = Arc::new(AddressCounts::default());
        let mut open = Vec::new();
        for peer in ["192.0.2.1", "2001:db8::1", "127.0.0.1", "::1"] {
            for _ in 0..CONNECTIONS_PER_ADDRESS {
                open.push(all.acquire(address(peer)).expect("room"));
            }
        }
        for full in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::ffff:1"] {
            assert!(all.acquire(address(full)).is_none(), "{full}");
        }
        for free in ["192.0.2.2", "2001:db8:0:1::1", "127.0.0.1", "::1"] {
            assert!(all.acquire(address(free)).is_some(), "{free}");
        }
        open.remove(0);
        assert!(all.acquire(address("192.0.2.1")).is_some(), "room again");
        drop(open);
        assert!(all.0.lock().is_empty());
    }
}
