//! The ids of a jail: the caller's own, or for root a range no user has.
//!
//! Root never maps itself: whatever the isolation, a process with root's id on the host is root
//! wherever the isolation has a hole. Ranges are taken from ids that no distribution gives to users
//! or containers, are locked while a jail runs, whichever engine it belongs to, and are free again
//! when its builder ends, however it ends.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use ostler_sys::errno::{errno_of, last_errno};
use rustix::io::Errno;

use super::JailError;

/// The number of ids in one range.
const RANGE_IDS: u32 = 65_536;
/// The first id of range 0.
const BASE_ID: u32 = 100_000;
/// The first and the last range: ids from 1,879,082,... up to 2^31, between those that containers
/// and users get by convention and those that some file systems interpret as negative.
const FIRST_RANGE: u32 = 28_672;
const LAST_RANGE: u32 = 32_765;
/// The lock file of ranges: one locked byte for each range in use.
const LOCKS: &str = "/run/ostler-spare-ids";
/// Files with ranges that administrators assigned (subuid(5), subgid(5)).
const SUBID_FILES: [&str; 2] = ["/etc/subuid", "/etc/subgid"];

/// A locked range; released on drop.
#[derive(Debug)]
struct IdRange {
    first: u32,
    _lock: File,
}

/// The ids of a jail.
#[derive(Debug)]
pub(super) struct IdMap {
    range: Option<IdRange>,
    /// The ids the init takes first; for root, root inside.
    pub(super) init: Option<(u32, u32)>,
    /// The command's ids inside.
    pub(super) inside: (u32, u32),
    /// The command's ids on the host.
    pub(super) host: (u32, u32),
}

impl IdMap {
    /// Chooses ids for a command that works in `workspace`; for root the inside ids are those of
    /// the workspace's owner, so that the command can write there without capabilities.
    pub(super) fn choose(workspace: Option<&Path>) -> Result<Self, JailError> {
        let own = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        if own.0 != 0 {
            return Ok(Self {
                range: None,
                init: None,
                inside: own,
                host: own,
            });
        }
        let range = IdRange::acquire()?;
        let owner = workspace.and_then(|path| path.symlink_metadata().ok());
        let owner = owner.map(|it| (it.uid(), it.gid()));
        let inside = owner
            .filter(|(uid, gid)| *uid < RANGE_IDS && *gid < RANGE_IDS)
            .unwrap_or((0, 0));
        let host = (range.first + inside.0, range.first + inside.1);
        Ok(Self {
            range: Some(range),
            init: Some((0, 0)),
            inside,
            host,
        })
    }

    pub(super) const fn is_spare(&self) -> bool {
        self.range.is_some()
    }

    /// Writes the id maps of a process.
    pub(super) fn write(&self, pid: i32) -> Result<(), JailError> {
        let write_file = |name: &str, text: String| {
            let path = format!("/proc/{pid}/{name}");
            std::fs::write(&path, text).map_err(|error| {
                let errno = errno_of(&error);
                JailError::on("id map", errno, path)
            })
        };
        match &self.range {
            Some(range) => {
                write_file("uid_map", format!("0 {} {RANGE_IDS}\n", range.first))?;
                write_file("gid_map", format!("0 {} {RANGE_IDS}\n", range.first))
            }
            None => {
                write_file("setgroups", "deny".to_owned())?;
                write_file("uid_map", format!("{0} {0} 1\n", self.host.0))?;
                write_file("gid_map", format!("{0} {0} 1\n", self.host.1))
            }
        }
    }
}

impl IdRange {
    fn acquire() -> Result<Self, JailError> {
        let failed = |errno| JailError::on("spare ids", errno, LOCKS);
        let locks = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(LOCKS)
            .map_err(|error| failed(errno_of(&error)))?;
        let delegated = subid_ranges();
        let ranges = LAST_RANGE - FIRST_RANGE + 1;
        // Each process begins at another range, so that they do not all try the same first.
        let start = std::process::id().wrapping_mul(31) % ranges;
        for step in 0..ranges {
            let range = FIRST_RANGE + (start + step) % ranges;
            let first = BASE_ID + range * RANGE_IDS;
            if delegated
                .iter()
                .all(|(start, count)| !overlaps(*start, *count, first))
                && try_lock(&locks, range)?
            {
                return Ok(Self {
                    first,
                    _lock: locks,
                });
            }
        }
        Err(failed(Errno::AGAIN))
    }
}

/// Ranges of `/etc/subuid` and `/etc/subgid`: first id, count.
fn subid_ranges() -> Vec<(u32, u32)> {
    let texts = SUBID_FILES
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok());
    texts.flat_map(|text| parse_subid(&text)).collect()
}

fn parse_subid(text: &str) -> Vec<(u32, u32)> {
    let line = |line: &str| {
        let mut fields = line.split(':').skip(1);
        let mut number = || fields.next()?.trim().parse().ok();
        Some((number()?, number()?))
    };
    text.lines().filter_map(line).collect()
}

/// Whether delegated ids, `count` from `start` on, meet the range that begins at `first`.
const fn overlaps(start: u32, count: u32, first: u32) -> bool {
    start < first + RANGE_IDS && first < start.saturating_add(count)
}

/// Locks one byte for as long as the open file description lives; false where another holds it.
#[expect(
    unsafe_code,
    reason = "fcntl(2) with a lock of an open file description"
)]
fn try_lock(file: &File, byte: u32) -> Result<bool, JailError> {
    let kind = |kind: libc::c_int| libc::c_short::try_from(kind).unwrap_or(0);
    // SAFETY: all zeroes is a valid value of these integers.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = kind(libc::F_WRLCK);
    request.l_whence = kind(libc::SEEK_SET);
    request.l_start = i64::from(byte);
    request.l_len = 1;
    // SAFETY: the lock's description lives through the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const request) };
    if done == 0 {
        return Ok(true);
    }
    match last_errno() {
        Errno::AGAIN | Errno::ACCESS => Ok(false),
        errno => Err(JailError::on("spare ids", errno, LOCKS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_administrators_gave_away_are_not_taken() {
        let given = parse_subid("alice:100000:65536\nbroken\nbob:1:x\n");
        assert_eq!(given, [(100_000, 65_536)]);
        assert!(overlaps(given[0].0, given[0].1, 100_000));
        assert!(overlaps(given[0].0, given[0].1, 165_535));
        assert!(!overlaps(given[0].0, given[0].1, 165_536));
    }

    #[test]
    fn every_range_lies_below_two_to_the_thirty_first() {
        let end = u64::from(BASE_ID) + (u64::from(LAST_RANGE) + 1) * u64::from(RANGE_IDS);
        assert!(end < 1 << 31, "{end}");
    }
}
