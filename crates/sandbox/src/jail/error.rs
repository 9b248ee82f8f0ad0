//! Why a jail could not be built, and advice for the user.

use std::fs;
use std::path::PathBuf;

use rustix::io::Errno;

/// A jail that could not be built; nothing of it is left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{step}{}: {}", at(.path.as_ref()), std::io::Error::from_raw_os_error(.errno.raw_os_error()))]
pub struct JailError {
    /// The step that failed.
    pub step: &'static str,
    /// The error number.
    pub errno: Errno,
    /// The path it concerns.
    pub path: Option<PathBuf>,
}

fn at(path: Option<&PathBuf>) -> String {
    path.map(|path| format!(" on {}", path.display()))
        .unwrap_or_default()
}

impl JailError {
    pub(super) const fn new(step: &'static str, errno: Errno) -> Self {
        Self {
            step,
            errno,
            path: None,
        }
    }

    pub(super) fn on(step: &'static str, errno: Errno, path: impl Into<PathBuf>) -> Self {
        Self {
            step,
            errno,
            path: Some(path.into()),
        }
    }
}

/// Advice for a user whose kernel refuses namespaces, from the kernel's own settings; none when no
/// obstacle is known.
#[must_use]
pub fn namespace_hint() -> Option<String> {
    let on = |name: &str, value: &str| {
        fs::read_to_string(format!("/proc/sys/{name}")).is_ok_and(|it| it.trim() == value)
    };
    if on("kernel/apparmor_restrict_unprivileged_userns", "1")
        && !rustix::process::geteuid().is_root()
    {
        return Some(
            "AppArmor restricts unprivileged user namespaces: give the executable a profile with \
             'userns,' or set kernel.apparmor_restrict_unprivileged_userns=0"
                .to_owned(),
        );
    }
    if on("user/max_user_namespaces", "0") {
        return Some("set user.max_user_namespaces above 0".to_owned());
    }
    if on("kernel/unprivileged_userns_clone", "0") && !rustix::process::geteuid().is_root() {
        return Some("set kernel.unprivileged_userns_clone=1".to_owned());
    }
    let nested = ["/.dockerenv", "/run/.containerenv"]
        .iter()
        .any(|path| fs::exists(path).unwrap_or(false));
    nested.then(|| {
        "this is a container: its runtime's seccomp profile or its masked /proc is in the way; \
         run it with 'seccomp=unconfined' and 'systempaths=unconfined'"
            .to_owned()
    })
}
