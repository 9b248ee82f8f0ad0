//! Limits per process by setrlimit(2). Only ever lowered: raising needs privileges that even
//! root may lack.

use ostler_model::Limits;

/// `(resource, limit)` pairs for a child to lower before exec: open files and file size.
#[must_use]
pub fn lowered(limits: &Limits) -> Vec<(i32, u64)> {
    let open_files = limits
        .open_files
        .map(|count| (number(libc::RLIMIT_NOFILE), u64::from(count)));
    let file_bytes = limits
        .file_bytes
        .map(|bytes| (number(libc::RLIMIT_FSIZE), bytes));
    open_files.into_iter().chain(file_bytes).collect()
}

/// The same for a command of a cell, where processes can be counted so too: the kernel counts
/// them per user and user namespace (since Linux 5.14), and the namespace is the cell's own.
#[must_use]
pub fn lowered_in_cell(limits: &Limits) -> Vec<(i32, u64)> {
    const WARDEN: u64 = 1;
    let mut all = lowered(limits);
    let count = limits.pids.map(|count| u64::from(count) + WARDEN);
    all.extend(count.map(|count| (number(libc::RLIMIT_NPROC), count)));
    all
}

/// The C libraries differ in the type of a resource's number, not in the number.
const fn number(resource: libc::__rlimit_resource_t) -> i32 {
    resource as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_is_lowered() {
        assert_eq!(lowered(&Limits::default()), []);
        let limits = Limits {
            open_files: Some(64),
            ..Limits::default()
        };
        assert_eq!(lowered(&limits), [(number(libc::RLIMIT_NOFILE), 64)]);
        let limits = Limits {
            pids: Some(8),
            ..Limits::default()
        };
        assert_eq!(lowered(&limits), []);
        assert_eq!(lowered_in_cell(&limits), [(number(libc::RLIMIT_NPROC), 9)]);
    }
}
