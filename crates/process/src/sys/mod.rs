//! The kernel's calls in the shapes this crate needs them: everything unsafe is here.

#[expect(unsafe_code, reason = "clone3(2) and the child before exec")]
pub(crate) mod clone;
#[expect(unsafe_code, reason = "anonymous mappings")]
pub(crate) mod memory;
pub(crate) mod packet;
pub(crate) mod proc;
#[expect(
    unsafe_code,
    reason = "registration promises that descriptors stay open"
)]
pub(crate) mod reactor;
#[expect(unsafe_code, reason = "fork(2) and inherited descriptors")]
pub(crate) mod role;
#[expect(unsafe_code, reason = "signal dispositions and descriptors")]
pub(crate) mod signals;
pub(crate) mod time;
#[expect(unsafe_code, reason = "wait4(2), which tells usage")]
pub(crate) mod wait;
