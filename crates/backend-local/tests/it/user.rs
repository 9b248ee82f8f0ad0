//! The same tests as an ordinary user without cgroup delegation.

use std::process::Command;

use crate::support::TestCase;

pub(crate) const CASES: &[TestCase] = &[
    ("everything_as_an_ordinary_user", quick_as_nobody),
    ("full_everything_as_an_ordinary_user", full_as_nobody),
];

/// The ids of an ordinary user.
const NOBODY: u32 = 65_534;

/// Without containers, whose user is another one anyway, and large amounts.
fn quick_as_nobody() {
    as_nobody(&[
        "user::",
        "full_",
        "megabytes",
        "three_hundred",
        "container::",
    ]);
}

fn full_as_nobody() {
    as_nobody(&["user::"]);
}

fn as_nobody(skipped: &[&str]) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::chown(scratch.path(), Some(NOBODY), Some(NOBODY)).expect("theirs");
    let copy = scratch.path().join("backend");
    std::fs::copy(std::env::current_exe().expect("a path"), &copy).expect("copied");
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(skipped.iter().flat_map(|name| ["--skip", *name]))
        .args(["--test-threads", "2"])
        .env("TMPDIR", scratch.path())
        .env("RUST_BACKTRACE", "0")
        .current_dir("/")
        .output()
        .expect("setpriv runs");
    let actual = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{actual}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
