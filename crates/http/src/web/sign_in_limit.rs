//! How many sign-ins of one address may fail. Pure: the clock is given.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// The most failures of one address within [`WINDOW`].
pub(crate) const FAILURES: usize = 10;
/// How long a failure counts.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
/// The most addresses with failures that are remembered.
const ADDRESSES: usize = 4_096;

/// When sign-ins of each address failed.
#[derive(Debug, Default)]
pub(crate) struct FailureTable(HashMap<IpAddr, VecDeque<Instant>>);

impl FailureTable {
    /// Counts a sign-in that has failed.
    ///
    /// # Errors
    /// How long to wait for the next one, when too many failed.
    pub(crate) fn count(&mut self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        if self.0.len() >= ADDRESSES && !self.0.contains_key(&address) {
            self.0.retain(|_, failures| {
                drop_old(failures, now);
                !failures.is_empty()
            });
            if self.0.len() >= ADDRESSES {
                return Err(WINDOW);
            }
        }
        let failures = self.0.entry(address).or_default();
        drop_old(failures, now);
        if failures.len() >= FAILURES
            && let Some(first) = failures.front()
        {
            return Err(WINDOW.saturating_sub(now.saturating_duration_since(*first)));
        }
        failures.push_back(now);
        Ok(())
    }
}

fn drop_old(failures: &mut VecDeque<Instant>, now: Instant) {
    while failures
        .front()
        .is_some_and(|at| now.saturating_duration_since(*at) >= WINDOW)
    {
        failures.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn after_ten_failures_an_address_waits_for_the_first_to_be_a_minute_old() {
        let mut table = FailureTable::default();
        let start = Instant::now();
        let second = Duration::from_secs(1);
        for number in 0..10 {
            assert!(table.count(ADDRESS, start + second * number).is_ok());
        }
        let now = start + second * 20;
        assert_eq!(table.count(ADDRESS, now), Err(second * 40));
        let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        assert!(table.count(other, now).is_ok(), "another address");
        assert!(table.count(ADDRESS, start + second * 60).is_ok());
        assert!(table.count(ADDRESS, start + second * 60).is_err());
    }

    #[test]
    fn addresses_are_forgotten_with_their_failures() {
        let mut table = FailureTable::default();
        let start = Instant::now();
        for number in 0..u32::try_from(ADDRESSES).unwrap() {
            let address = IpAddr::V4(Ipv4Addr::from_bits(number));
            assert!(table.count(address, start).is_ok());
        }
        let new = IpAddr::V4(Ipv4Addr::BROADCAST);
        assert_eq!(table.count(new, start), Err(WINDOW));
        assert!(table.count(new, start + WINDOW).is_ok());
        assert_eq!(table.0.len(), 1);
    }
}
