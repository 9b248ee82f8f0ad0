//! The same tests as an ordinary user.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::ProxyTestCase;

pub(crate) const CASES: &[ProxyTestCase] = &[("everything_as_an_ordinary_user", as_nobody)];

fn as_nobody() {
    // Root of a user namespace of its own is not root; the test as root covers this one.
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let whole = map.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
    if !rustix::process::geteuid().is_root() || !whole {
        return;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(scratch.path(), open).expect("set");
    let copy = scratch.path().join("egress");
    std::fs::copy(std::env::current_exe().expect("a path"), &copy).expect("copied");
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args([
            "--skip",
            "user::",
            "--skip",
            "programs::",
            "--skip",
            "flood",
        ])
        .args(["--test-threads", "2"])
        .env("TMPDIR", scratch.path())
        .env("HOME", scratch.path())
        .env("RUST_BACKTRACE", "0")
        .env_remove(crate::support::IN_NETNS)
        .current_dir("/")
        .output()
        .expect("setpriv runs");
    crate::support::stdout_text(&output);
}
