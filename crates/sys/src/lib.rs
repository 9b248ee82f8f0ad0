//! Wrappers of system calls that several crates need, and those that need `unsafe` where their
//! callers forbid it. Each module is about one thing:
//!
//! * messages between processes: [`seqpacket`] (whole packets with a descriptor), [`packet`] (what
//!   is in them), [`peer`] (who is at the other end);
//! * processes: [`process_role`] (what a process that was just started or forked does first),
//!   [`signals`], [`pidfd`] (waiting for another one's end);
//! * what the kernel reports: [`errno`], [`mount_table`], [`process_stat`], [`proc`] (processes and their
//!   descendants);
//! * this process: [`open_files`] (the limit on descriptors), [`cloexec`], [`environ`],
//!   [`resident_memory`];
//! * files: [`regular_file`] (reading at paths of others), [`file_lock`], [`private_dir`], [`owned_dir`]
//!   (directories that are removed again), `file_watch` (changes of one file).
//!
//! What waits in an async runtime is behind the feature `async`: `async_fd`, `file_watch`,
//! `open_files` and the async half of `pidfd`. Must never know of executions, sandboxes, journals or owners. A helper
//! with one user stays with that user.

#[cfg(feature = "async")]
#[expect(
    unsafe_code,
    reason = "registration promises that descriptors stay open"
)]
pub mod async_fd;
#[expect(unsafe_code, reason = "close_range(2)")]
pub mod cloexec;
#[expect(unsafe_code, reason = "environ(7)")]
pub mod environ;
pub mod errno;
pub mod file_lock;
#[cfg(feature = "async")]
pub mod file_watch;
pub mod mount_table;
#[cfg(feature = "async")]
pub mod open_files;
pub mod owned_dir;
pub mod packet;
#[expect(unsafe_code, reason = "getsockopt(2) of a peer that has no pid here")]
pub mod peer;
pub mod pidfd;
pub mod private_dir;
pub mod proc;
#[expect(unsafe_code, reason = "fork(2), unshare(2) and inherited descriptors")]
pub mod process_role;
pub mod process_stat;
pub mod regular_file;
#[expect(unsafe_code, reason = "malloc_trim(3) and madvise(2)")]
pub mod resident_memory;
pub mod seqpacket;
#[expect(unsafe_code, reason = "signal dispositions and descriptors")]
pub mod signals;
