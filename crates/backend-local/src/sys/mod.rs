//! Wrappers of system calls for this crate; unsafe code is here, in `ostler_sys` or in
//! [`ostler_sandbox::spawn`].

pub(crate) use ostler_sandbox::spawn::{self as clone, memory, wait};

#[expect(unsafe_code, reason = "a child that makes system calls only")]
pub(crate) mod netns;
pub(crate) mod proc;
pub(crate) mod process_name;
pub(crate) mod time;
