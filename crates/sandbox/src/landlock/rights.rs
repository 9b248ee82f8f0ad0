//! What each version of Landlock's interface can restrict (landlock(7), "ABI").

/// Executing a file.
pub const EXECUTE: u64 = 1;
/// Opening a file for writing.
pub const WRITE_FILE: u64 = 1 << 1;
/// Opening a file for reading.
pub const READ_FILE: u64 = 1 << 2;
/// Listing a directory.
pub const READ_DIR: u64 = 1 << 3;
/// Removing, creating and, from version 2 on, moving entries of directories.
const ENTRIES: u64 = 0x1FF0;
/// Moving and linking between directories (version 2).
pub const REFER: u64 = 1 << 13;
/// Truncating files (version 3).
pub const TRUNCATE: u64 = 1 << 14;
/// ioctl(2) on devices (version 5).
pub const IOCTL_DEV: u64 = 1 << 15;

/// TCP bind(2) (version 4).
pub const BIND_TCP: u64 = 1;
/// TCP connect(2) (version 4).
pub const CONNECT_TCP: u64 = 1 << 1;

/// Abstract unix sockets of processes outside (version 6).
pub const SCOPE_ABSTRACT_UNIX: u64 = 1;
/// Signals to processes outside (version 6).
pub const SCOPE_SIGNAL: u64 = 1 << 1;

/// The first version under which ordinary programs work: before it, nothing may be renamed from one
/// directory to another.
pub const ABI_MIN: u32 = 2;
/// The newest version whose restrictions are known here; 7 added only logging.
pub const ABI_MAX: u32 = 7;

/// Reading and executing everything below.
pub const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
/// Using existing files, devices included, without creating or removing any.
pub const USE: u64 = READ | WRITE_FILE | TRUNCATE | IOCTL_DEV;
/// All rights on files.
pub const ALL: u64 = READ | WRITE_FILE | ENTRIES | REFER | TRUNCATE | IOCTL_DEV;
/// The rights that apply to files other than directories.
pub const FILE_RIGHTS: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// Rights on files that a version restricts.
#[must_use]
pub const fn fs(abi: u32) -> u64 {
    match abi {
        0 => 0,
        1 => ALL & !(REFER | TRUNCATE | IOCTL_DEV),
        2 => ALL & !(TRUNCATE | IOCTL_DEV),
        3 | 4 => ALL & !IOCTL_DEV,
        5.. => ALL,
    }
}

/// Rights on TCP ports that a version restricts.
#[must_use]
pub const fn net(abi: u32) -> u64 {
    if abi >= 4 { BIND_TCP | CONNECT_TCP } else { 0 }
}

/// The scopes a version restricts.
#[must_use]
pub const fn scopes(abi: u32) -> u64 {
    if abi >= 6 {
        SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL
    } else {
        0
    }
}

/// The restrictions a version lacks compared with the newest one known here, as text; empty when
/// none.
#[must_use]
pub fn missing_rights(abi: u32) -> Vec<&'static str> {
    let parts = [
        (2, "moving between directories"),
        (3, "truncation"),
        (4, "TCP ports"),
        (5, "ioctl on devices"),
        (6, "signals and abstract sockets"),
    ];
    let newer = parts.iter().filter(|(since, _)| abi < *since);
    newer.map(|(_, what)| *what).collect()
}
