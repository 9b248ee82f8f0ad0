//! Names of this program's processes, as ps(1) and top(1) show them (`/proc/PID/comm`).

use std::ffi::CStr;

/// The zygote, which forks shims.
pub(crate) const ZYGOTE: &CStr = c"ostler-keeper";
/// The name of a shim.
pub(crate) const SHIM: &CStr = c"ostler-shim";
/// The init process of a jail's pid namespace.
pub(crate) const INIT: &CStr = c"ostler-init";
/// An egress proxy.
pub(crate) const EGRESS: &CStr = c"ostler-gate";
