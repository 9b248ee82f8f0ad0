//! Hostile upper layers.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::super::baseline::Baseline;
use super::super::error::OverlayError;
use super::stage::{OverlayFixture, tree};
use crate::overlay::CommitOutcome;

#[test]
fn links_lead_nowhere() {
    let stage = OverlayFixture::new("mkdir d; echo a>d/f");
    let outside = stage.at("outside");
    fs::create_dir(&outside).expect("a directory");
    // The command replaces a directory by a link to the outside, and the other way round.
    stage.command(&format!(
        "rm -r d; ln -s {} d; echo x>top",
        outside.display()
    ));
    stage.commit();
    assert!(
        fs::symlink_metadata(stage.host("d"))
            .expect("d")
            .is_symlink()
    );
    assert_eq!(fs::read_dir(&outside).expect("outside").count(), 0);
}

#[test]
fn a_link_on_the_host_is_not_followed() {
    let stage = OverlayFixture::new("mkdir d; echo a>d/f");
    let outside = stage.at("outside");
    fs::create_dir(&outside).expect("a directory");
    stage.command("echo b>d/f; echo c>d/new");
    stage.on_host(&format!(
        "mv d d2; ln -s {} d; cp d2/f d/f",
        outside.display()
    ));
    let conflicts = stage.conflicts();
    assert!(conflicts.iter().any(|it| it.0 == "d"), "{conflicts:?}");
    assert_eq!(fs::read(outside.join("f")).expect("f"), b"a\n");
    assert!(!outside.join("new").exists());
}

#[test]
fn pipes_devices_and_sockets_neither_block_nor_arrive() {
    let stage = OverlayFixture::new("echo a>was");
    stage.command("mkfifo pipe; rm was; mkfifo was; echo b>f");
    let changes = stage.changes();
    assert_eq!(changes.totals, [2, 1, 0]);
    let diff = stage.store().diff(&[], 10_000).expect("a diff").0;
    assert!(!diff.contains("pipe"));
    stage.commit();
    assert!(!stage.host("pipe").exists());
    assert_eq!(fs::read(stage.host("was")).expect("was"), b"a\n");
    assert_eq!(fs::read(stage.host("f")).expect("f"), b"b\n");
}

#[test]
fn names_are_bytes() {
    let stage = OverlayFixture::new("");
    stage.command("echo 1 > $'line\\nbreak'; echo 2 > $'\\377\\376'; mkdir ' '; echo 3 > ' /\\'; echo 4 > ...");
    stage.commit();
    assert_eq!(tree(&stage.at("host")), tree(&stage.at("seen")));
}

#[test]
fn closed_directories_and_files_are_committed_closed() {
    let stage = OverlayFixture::new("mkdir open; echo a>open/f");
    stage.command("mkdir -p shut/in; echo s>shut/in/s; chmod 000 shut/in/s shut/in; chmod 500 shut; chmod 555 open");
    stage.commit();
    let mode = |path: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::symlink_metadata(stage.host(path))
            .expect("metadata")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode("shut"), mode("open")), (0o500, 0o555));
    super::stage::shell(&stage.at("host"), "chmod 700 shut open");
    assert_eq!(mode("shut/in"), 0);
    super::stage::shell(&stage.at("host"), "chmod 700 shut/in");
    assert_eq!(mode("shut/in/s"), 0);
    // The clean-up of the fixture needs access.
    super::stage::shell(&stage.at("."), "chmod -R u+rwx seen");
}

#[test]
fn a_review_shows_what_a_commit_writes_also_in_closed_directories() {
    let stage = OverlayFixture::new("mkdir was; echo a>was/f");
    let script = "mkdir -p new/in; echo s>new/in/s; chmod 000 new/in/s new/in; chmod 300 new; \
        echo b>was/f; chmod 000 was; chmod 300 .";
    stage.command(script);
    let ended = || stage.store().of_ended_command();
    let changes = ended().changes(100).expect("changes");
    let paths: Vec<_> = changes
        .changes
        .iter()
        .map(|it| it.path.to_string())
        .collect();
    assert_eq!(paths, [".", "new", "new/in", "new/in/s", "was", "was/f"]);
    assert_eq!(changes.autorun.incomplete, None);
    assert_eq!(ended().changes(100).expect("changes"), changes, "each time");
    let diff = ended().diff(&[], 10_000).expect("a diff").0;
    assert!(diff.contains("+s\n") && diff.contains("+b\n"), "{diff}");
    let committed = match ended().commit(false).expect("a commit") {
        CommitOutcome::Committed(committed) => committed,
        other @ (CommitOutcome::Autorun(_) | CommitOutcome::Conflicts(_)) => panic!("{other:?}"),
    };
    assert_eq!(committed.changes, changes.changes);
    let mode = |path: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = stage.host(path);
        let mode = fs::symlink_metadata(&path)
            .expect("metadata")
            .permissions()
            .mode();
        super::stage::shell(&stage.at("."), &format!("chmod u+rwx {}", path.display()));
        mode & 0o777
    };
    let modes = [".", "new", "new/in", "new/in/s", "was"].map(mode);
    assert_eq!(modes, [0o300, 0o300, 0, 0, 0]);
    // The clean-up of the fixture needs access.
    super::stage::shell(&stage.at("."), "chmod -R u+rwx seen");
}

#[test]
fn what_is_closed_while_the_command_runs_is_named() {
    if rustix::process::geteuid().is_root() {
        // Root reads it.
        return;
    }
    let stage = OverlayFixture::new("");
    stage.command("mkdir new; echo s>new/s; chmod 300 new");
    let changes = stage.changes();
    assert_eq!(changes.totals, [1, 0, 0]);
    let incomplete = changes.autorun.incomplete.expect("a note");
    assert!(incomplete.starts_with("new is closed"), "{incomplete}");
    let (_, _, changes) = stage.store().diff(&[], 10_000).expect("a diff");
    assert!(changes.autorun.incomplete.is_some());
    super::stage::shell(&stage.at("."), "chmod -R u+rwx seen");
}

#[test]
fn a_tree_deeper_than_any_path_is_refused_and_can_be_discarded() {
    let stage = OverlayFixture::new("");
    let layers = stage.prepare();
    super::stage::shell(
        &layers.upper,
        "for i in $(seq 1 400); do mkdir aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; cd -P aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done; echo x>bottom",
    );
    let refused = stage.store().commit(false);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(fs::read_dir(stage.at("host")).expect("the host").count(), 0);
    stage.store().discard().expect("a discard");
    let left = fs::read_dir(stage.store_dir()).expect("the store");
    let left: Vec<_> = left.map(|it| it.expect("an entry").file_name()).collect();
    assert!(
        left.iter().all(|it| !it.as_bytes().starts_with(b"gone")),
        "{left:?}"
    );
    assert_eq!(left.len(), 2);
}

#[test]
fn damaged_records_are_reported() {
    let stage = OverlayFixture::new("echo a>f");
    stage.command("echo b>f");
    let path = stage.store_dir().join("baseline");
    let mut bytes = fs::read(&path).expect("a record");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).expect("written");
    assert!(stage.store().commit(false).is_err());
    fs::write(&path, &bytes[..2]).expect("written");
    assert!(stage.store().changes(1).is_err());
    assert_eq!(fs::read(stage.host("f")).expect("f"), b"a\n");
}

#[test]
fn a_workspace_with_marks_of_an_overlay_gets_none() {
    use rustix::fs::{XattrFlags, setxattr};
    for (on, name) in [
        ("d", "user.overlay.opaque"),
        ("d/empty", "user.overlay.whiteout"),
        (".", "user.overlay.opaque"),
    ] {
        let scratch = tempfile::tempdir().expect("a directory");
        fs::create_dir(scratch.path().join("d")).expect("made");
        fs::write(scratch.path().join("d/empty"), "").expect("written");
        let mark = |name: &str| setxattr(scratch.path().join(on), name, b"x", XattrFlags::empty());
        if mark("user.harmless").is_err() {
            // A file system without user attributes.
            return;
        }
        assert!(Baseline::capture(scratch.path()).is_ok(), "{on}");
        mark(name).expect("set");
        let refused = Baseline::capture(scratch.path());
        assert!(matches!(refused, Err(OverlayError::Marked { .. })), "{on}");
    }
}
