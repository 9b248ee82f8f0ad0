//! The pool of fake addresses and the names they represent.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// Names that have an address at a time.
pub(crate) const NAMES_MAX: usize = 4096;
/// How long a name keeps its address after its last query, in milliseconds: twice the TTL, for
/// programs that cache answers for longer.
const LEASE_MS: u64 = 2 * crate::dns::TTL_S as u64 * 1000;
/// The first fake address; lower ones are the proxy's own.
const FIRST: u32 = Ipv4Addr::new(198, 18, 1, 0).to_bits();

/// A name and the addresses it last resolved to.
#[derive(Debug)]
pub(crate) struct NamedHost {
    pub(crate) name: String,
    pub(crate) pinned: Mutex<PinnedAddresses>,
}

/// Upstream addresses that a name keeps for a while, so that the address that was checked is the
/// one that is dialled.
#[derive(Debug, Default)]
pub(crate) struct PinnedAddresses {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) expires_at: Option<Instant>,
}

/// No address is free: every name was queried recently or has connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FakeIpPoolFull;

/// Maps names to fake addresses and back.
#[derive(Debug, Default)]
pub(crate) struct FakeIpPool {
    slots: Vec<FakeIpSlot>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct FakeIpSlot {
    host: Rc<NamedHost>,
    last_used: Instant,
}

impl FakeIpSlot {
    fn new(name: &str, now: Instant) -> Self {
        let host = Rc::new(NamedHost {
            name: name.to_owned(),
            pinned: Mutex::default(),
        });
        Self {
            host,
            last_used: now,
        }
    }

    /// Whether nothing uses it any more: no connection holds the host, and no program the answer.
    fn is_unused(&self, now: Instant) -> bool {
        let lease = Duration::from_millis(LEASE_MS);
        Rc::strong_count(&self.host) == 1 && now.saturating_duration_since(self.last_used) >= lease
    }
}

impl FakeIpPool {
    /// The address of a name, which is kept while the name is queried. A new name gets a free
    /// address, or that of the least recently used name.
    pub(crate) fn assign(&mut self, name: &str, now: Instant) -> Result<Ipv4Addr, FakeIpPoolFull> {
        if let Some(&index) = self.by_name.get(name) {
            self.slots[index].last_used = now;
            return Ok(address(index));
        }
        let slot = FakeIpSlot::new(name, now);
        let index = if self.slots.len() < NAMES_MAX {
            self.slots.push(slot);
            self.slots.len() - 1
        } else {
            let unused = (0..).zip(&self.slots);
            let unused = unused.filter(|(_, slot)| slot.is_unused(now));
            let (index, _) = unused
                .min_by_key(|(_, slot)| slot.last_used)
                .ok_or(FakeIpPoolFull)?;
            self.by_name.remove(&self.slots[index].host.name);
            self.slots[index] = slot;
            index
        };
        self.by_name.insert(name.to_owned(), index);
        Ok(address(index))
    }

    /// The name that an address represents.
    pub(crate) fn host_for(&self, address: Ipv4Addr) -> Option<Rc<NamedHost>> {
        let index = usize::try_from(address.to_bits().checked_sub(FIRST)?).ok()?;
        self.slots.get(index).map(|slot| Rc::clone(&slot.host))
    }
}

fn address(index: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST + u32::try_from(index).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_address_and_the_address_its_name() {
        let (mut names, now) = (FakeIpPool::default(), Instant::now());
        let first = names.assign("a.test", now).expect("there is room");
        let second = names.assign("b.test", now).expect("there is room");
        assert_ne!(first, second);
        assert_eq!(names.assign("a.test", now), Ok(first));
        let host = names.host_for(second).expect("it was given out");
        assert_eq!(host.name, "b.test");
    }

    #[test]
    fn addresses_that_were_not_given_out_have_no_name() {
        let mut names = FakeIpPool::default();
        assert!(names.assign("a.test", Instant::now()).is_ok());
        for address in [
            [198, 18, 0, 1],
            [198, 18, 1, 1],
            [198, 19, 0, 2],
            [255; 4],
            [0; 4],
        ] {
            assert!(names.host_for(address.into()).is_none());
        }
    }

    #[test]
    fn a_full_pool_takes_from_the_longest_unused_and_never_from_a_used_one() {
        let mut names = FakeIpPool::default();
        let start = Instant::now();
        for at in 0..NAMES_MAX {
            let requested = start + Duration::from_millis(u64::try_from(at).expect("small"));
            let name = format!("n{at}.test");
            assert!(names.assign(&name, requested).is_ok());
        }
        assert_eq!(names.assign("more.test", start), Err(FakeIpPoolFull));
        let later = start + Duration::from_millis(2 * LEASE_MS);
        let connection = names.host_for(address(0)).expect("it was given out");
        assert_eq!(names.assign("more.test", later), Ok(address(1)));
        assert_eq!(connection.name, "n0.test");
        assert_eq!(names.host_for(address(0)).expect("kept").name, "n0.test");
        drop(connection);
        assert_eq!(names.assign("n1.test", later), Ok(address(0)));
        assert_eq!(names.host_for(address(1)).expect("new").name, "more.test");
    }
}
