//! Finds descriptor numbers that are not in use.

use std::ops::Range;

/// How many numbers one poll(2) checks.
pub(super) const SCAN_FDS: i32 = 128;
const SCAN_LEN: usize = SCAN_FDS.unsigned_abs() as usize;

/// How many of these numbers, the first [`SCAN_FDS`] at most, are not open.
pub(super) fn count_unused(numbers: Range<i32>) -> u64 {
    let empty = libc::pollfd {
        fd: -1,
        events: 0,
        revents: 0,
    };
    let mut entries = [empty; SCAN_LEN];
    let len = numbers.len().min(SCAN_LEN);
    for (entry, number) in entries.iter_mut().zip(numbers) {
        entry.fd = number;
    }
    let count = libc::nfds_t::try_from(len).unwrap_or_default();
    // SAFETY: the array is owned and has at least `count` entries. poll(2) reads the state of each
    // descriptor and changes none; a number that is not open is reported as POLLNVAL.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), count, 0) };
    if ready <= 0 {
        return 0;
    }
    let is_unused = |it: &&libc::pollfd| it.revents & libc::POLLNVAL != 0;
    entries[..len].iter().filter(is_unused).count() as u64
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn open_descriptors_are_distinguished_from_free_numbers() {
        let file = std::fs::File::open("/dev/null").expect("a file");
        let number = file.as_raw_fd();
        assert_eq!(count_unused(number..number + 1), 0);
        assert_eq!(count_unused(1_000_000_000..1_000_000_007), 7);
        assert_eq!(count_unused(5..5), 0);
    }
}
