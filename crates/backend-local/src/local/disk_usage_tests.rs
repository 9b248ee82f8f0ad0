use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

const MEGABYTE: u64 = 1 << 20;

fn measured(root: &Path) -> DiskUsage {
    disk_usage(root, Writers::Own).expect("a directory")
}

/// Makes directories below one another, each beside another one, and writes a file to each of both
/// at the bottom; returns the descriptors of the way down.
fn make_deep(root: &Path, levels: usize, name: &str) -> Vec<OwnedFd> {
    let mut way = vec![rustix::fs::open(root, PASSED, Mode::empty()).expect("opened")];
    for _ in 0..levels {
        let at = way.last().expect("the root");
        rustix::fs::mkdirat(at, name, Mode::RWXU).expect("made");
        rustix::fs::mkdirat(at, "beside", Mode::RWXU).expect("made");
        way.push(rustix::fs::openat(at, name, PASSED, Mode::empty()).expect("opened"));
    }
    way
}

fn write_megabyte(directory: &OwnedFd, path: &str) {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, path, flags, Mode::RUSR | Mode::WUSR);
    let mut file = fs::File::from(file.expect("opened"));
    io::Write::write_all(&mut file, &vec![1; 1 << 20]).expect("written");
}

fn remove_deep(root: &Path) {
    let status = std::process::Command::new("rm")
        .arg("-rf")
        .arg(root)
        .status();
    assert!(status.expect("rm runs").success());
}

#[test]
fn a_tree_that_is_deeper_than_a_path_is_long_counts() {
    let scratch = tempfile::tempdir().expect("a directory");
    let name = "x".repeat(200);
    let way = make_deep(scratch.path(), 3 * OPEN_LEVELS_MAX, &name);
    for depth in [
        0,
        1,
        OPEN_LEVELS_MAX,
        2 * OPEN_LEVELS_MAX,
        3 * OPEN_LEVELS_MAX - 1,
    ] {
        write_megabyte(&way[depth], "beside/file");
    }
    write_megabyte(way.last().expect("the bottom"), "file");
    let usage = measured(scratch.path());
    let directories = 6 * OPEN_LEVELS_MAX as u64;
    let expected = 6 * MEGABYTE;
    assert!(
        (expected..=expected + directories * 8_192).contains(&usage.bytes),
        "{usage:?}"
    );
    assert_eq!(usage.unread, None);
    remove_deep(scratch.path());
}

#[test]
fn what_was_moved_away_during_the_walk_is_left_out_and_the_rest_counts() {
    let scratch = tempfile::tempdir().expect("a directory");
    let way = make_deep(scratch.path(), 4, "way");
    let top = rustix::fs::open(scratch.path(), LISTED, Mode::empty()).expect("opened");
    let levels = ["", "way", "way", "way"]
        .iter()
        .zip(&way)
        .map(|(name, directory)| {
            let stat = rustix::fs::fstat(directory).expect("a status");
            WalkLevel {
                name: name.as_bytes().to_vec(),
                identity: Inode::of(&stat),
                directory: None,
                pending: vec![c"beside".to_owned()],
            }
        });
    let mut walk = DiskWalk::new(scratch.path(), Writers::Own, 0);
    walk.levels = levels.collect();
    walk.levels[0].directory = Some(top);
    assert!(walk.reopen_last(), "nothing was moved");
    walk.levels[3].directory = None;
    rustix::fs::renameat(&way[1], "way", &way[0], "moved").expect("moved");
    assert!(!walk.reopen_last());
    assert_eq!(walk.levels.len(), 2, "those below went with it");
    assert!(
        walk.levels[1].directory.is_some(),
        "the walk continues there"
    );
    assert_eq!(walk.unread, None);
}

#[test]
fn a_directory_that_its_owner_may_not_read_is_named() {
    if rustix::process::geteuid().is_root() {
        // Root reads it; `test_a_directory_that_is_closed…` of test_limits.py runs as another user.
        return;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let closed = scratch.path().join("closed");
    fs::create_dir(&closed).expect("made");
    fs::write(closed.join("file"), "x").expect("written");
    fs::write(scratch.path().join("beside"), vec![1; 1 << 20]).expect("written");
    for mode in [0, 0o300, 0o400] {
        fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).expect("its own");
        let usage = measured(scratch.path());
        let unread = usage.unread.expect("a directory");
        assert_eq!(unread.path, closed, "{mode:o}");
        assert!(unread.reason.contains("denied"), "{unread:?}");
        assert!(usage.bytes >= MEGABYTE, "the rest counts");
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("its own");
}
