//! Wrappers of system calls for this crate; unsafe code is here, or in [`ostler_sandbox::spawn`].

pub(crate) use ostler_egress::async_fd;
pub(crate) use ostler_sandbox::spawn::{
    self as clone, memory, process_role, seqpacket, signals, wait,
};

#[expect(unsafe_code, reason = "poll(2) of numbers that may be closed")]
pub(crate) mod fd_scan;
#[expect(unsafe_code, reason = "malloc_trim(3)")]
pub(crate) mod heap;
#[expect(unsafe_code, reason = "a child that makes system calls only")]
pub(crate) mod netns;
pub(crate) mod proc;
pub(crate) mod process_name;
pub(crate) mod time;
