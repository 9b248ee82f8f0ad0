//! The same tests as an ordinary user, and tests that need root.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use ostler_model::ByteString;

use super::support::{JailFixture, is_root};

#[test]
fn everything_as_an_ordinary_user() {
    if !is_root() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let copy = scratch.path().join("jail");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["jail::", "--skip", "ordinary::", "--test-threads", "2"])
        .env("TMPDIR", scratch.path())
        .env("RUST_BACKTRACE", "0")
        .current_dir("/")
        .output()
        .unwrap();
    let actual = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{actual}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn roots_commands_work_where_another_user_does_whose_directories_are_closed() {
    if !is_root() {
        return;
    }
    let fixture = JailFixture::new();
    let give =
        |path: &std::path::Path| std::os::unix::fs::chown(path, Some(1234), Some(1234)).unwrap();
    let workspace = fixture.home.join("project");
    std::fs::create_dir(&workspace).unwrap();
    give(&workspace);
    give(&fixture.home);
    std::fs::set_permissions(&fixture.home, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut confinement = fixture.confinement();
    confinement.workspace = Some(ByteString::from(workspace.as_path()));
    let ran = super::support::run(
        confinement,
        "echo x > x && id -u",
        &workspace,
        &fixture.home,
    );
    assert_eq!(ran.unwrap().ok(), "1234\n");
    use std::os::unix::fs::MetadataExt;
    assert_eq!(std::fs::metadata(workspace.join("x")).unwrap().uid(), 1234);
}
