//! The codes of links: each valid once, for a time, kept as a hash. Pure: the clock is given.

use std::time::Duration;

use jiff::SignedDuration;
use ostler_model::owner::Principal;
use ostler_model::{Timestamp, duration};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The most codes that are valid at once.
pub(crate) const CODES: usize = 32;
/// How long a link signs in, in minutes.
pub const LINK_MINUTES: i64 = 10;
const HASH_BYTES: usize = 32;

/// What a code allows: a token for this principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeGrant {
    hash: [u8; HASH_BYTES],
    /// Who requested the code.
    pub(crate) principal: Principal,
    expires: Timestamp,
}

/// The codes that are valid.
#[derive(Debug, Default)]
pub(crate) struct CodeTable(Vec<CodeGrant>);

/// There are [`CODES`] codes; the first of them ends after this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodesFull(pub(crate) Duration);

impl CodeTable {
    /// Makes `code` valid from `now` on, and returns until when.
    ///
    /// # Errors
    /// When there are too many: a link that somebody has must not end for another.
    pub(crate) fn insert(
        &mut self,
        code: &str,
        principal: Principal,
        now: Timestamp,
    ) -> Result<Timestamp, CodesFull> {
        self.drop_expired(now);
        if self.0.len() >= CODES {
            let first = self.0.iter().map(|grant| grant.expires).min();
            return Err(CodesFull(duration::between(now, first.unwrap_or(now))));
        }
        let expires = now + SignedDuration::from_mins(LINK_MINUTES);
        self.0.push(CodeGrant {
            hash: hash(code),
            principal,
            expires,
        });
        Ok(expires)
    }

    /// What this code allows; it is not valid any more afterwards.
    pub(crate) fn take(&mut self, code: &str, now: Timestamp) -> Option<CodeGrant> {
        self.drop_expired(now);
        let hash = hash(code);
        let is_it = |grant: &CodeGrant| bool::from(grant.hash[..].ct_eq(&hash[..]));
        let index = self.0.iter().position(is_it)?;
        Some(self.0.swap_remove(index))
    }

    /// Makes a code valid again that could not be used.
    pub(crate) fn put_back(&mut self, grant: CodeGrant) {
        self.0.push(grant);
    }

    fn drop_expired(&mut self, now: Timestamp) {
        self.0.retain(|grant| grant.expires > now);
    }
}

fn hash(code: &str) -> [u8; HASH_BYTES] {
    Sha256::digest(code.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn after(seconds: i64) -> Timestamp {
        START + SignedDuration::from_secs(seconds)
    }

    fn insert(table: &mut CodeTable, code: &str, now: Timestamp) -> Result<Timestamp, CodesFull> {
        table.insert(code, Principal::unix(7), now)
    }

    #[test]
    fn a_code_is_valid_once() {
        let mut table = CodeTable::default();
        assert_eq!(insert(&mut table, "one", START), Ok(after(600)));
        assert_eq!(insert(&mut table, "other", START), Ok(after(600)));
        for unknown in ["", "on", "one "] {
            assert_eq!(table.take(unknown, START), None, "{unknown}");
        }
        let grant = table.take("one", START).unwrap();
        assert_eq!(grant.principal, Principal::unix(7));
        assert_eq!(table.take("one", START), None);
        table.put_back(grant);
        assert!(table.take("one", START).is_some());
        assert!(table.take("other", START).is_some());
    }

    #[test]
    fn a_code_ends_after_its_time_also_when_it_was_put_back() {
        let last = LINK_MINUTES * 60 - 1;
        let mut table = CodeTable::default();
        insert(&mut table, "one", START).unwrap();
        let grant = table.take("one", after(last)).unwrap();
        table.put_back(grant);
        assert_eq!(table.take("one", after(last + 1)), None);
    }

    #[test]
    fn one_more_than_there_can_be_waits_for_the_first_to_end() {
        let mut table = CodeTable::default();
        for (number, at) in (0..CODES).zip(0..) {
            insert(&mut table, &number.to_string(), after(at)).unwrap();
        }
        let wait = Duration::from_secs(600 - 60);
        assert_eq!(insert(&mut table, "more", after(60)), Err(CodesFull(wait)));
        assert!(table.take("5", after(60)).is_some());
        assert!(
            insert(&mut table, "more", after(60)).is_ok(),
            "one was used"
        );
        assert!(insert(&mut table, "last", after(599)).is_err());
        assert!(insert(&mut table, "last", after(600)).is_ok(), "one ended");
        assert_eq!(table.take("0", after(600)), None);
        assert!(table.take("1", after(600)).is_some());
    }
}
