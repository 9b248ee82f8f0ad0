//! Listing, showing, committing and discarding.

use std::fs;
use std::os::unix::fs::MetadataExt;

use ostler_model::{ByteString, ConflictReason, FileKind, OverlayOutcome};

use super::stage::{OverlayFixture, tree};
use crate::overlay::{CommitOutcome, OverlayError};

const TREE: &str = "mkdir -p d/e gone opq to_file; echo a>f; echo x>d/x; echo y>d/e/y; \
    echo g>gone/g; echo o>opq/o; echo t>to_dir; echo k>to_file/k; ln -s f link; echo s>same; \
    chmod 644 f; echo m>mode";
const WORK: &str = "echo b>>f; rm -r gone; rm -r opq; mkdir opq; echo n>opq/n; chmod 600 mode; \
    touch same; rm to_dir; mkdir to_dir; echo i>to_dir/i; rm -r to_file; echo w>to_file; \
    ln -sfn elsewhere link; mkdir -p new/deep; echo q>new/deep/q; mkfifo pipe; mv d moved";

#[test]
fn changes_are_listed_with_sizes() {
    let stage = OverlayFixture::new(TREE);
    stage.command(WORK);
    let expected = [
        "-d",
        "-d/e",
        "-d/e/y",
        "-d/x",
        "~f",
        "-gone",
        "-gone/g",
        "~link",
        "~mode",
        "+moved",
        "+moved/e",
        "+moved/e/y",
        "+moved/x",
        "+new",
        "+new/deep",
        "+new/deep/q",
        "+opq/n",
        "-opq/o",
        "+pipe",
        "~to_dir",
        "+to_dir/i",
        "~to_file",
        "-to_file/k",
    ];
    assert_eq!(stage.marks(), expected);
    let changes = stage.changes();
    assert_eq!(changes.totals, [10, 5, 8]);
    assert_eq!(changes.fate, OverlayOutcome::Open);
    let f = &changes.changes[4];
    assert_eq!((f.bytes, f.bytes_before), (4, Some(2)));
    let pipe = &changes.changes[18];
    assert_eq!(pipe.what, FileKind::Special);
    let few = stage.store().changes(3).expect("changes");
    assert_eq!((few.changes.len(), few.totals), (3, [10, 5, 8]));
}

#[test]
fn a_commit_yields_what_the_command_saw_and_is_final() {
    let stage = OverlayFixture::new(TREE);
    stage.command(&format!("{WORK}; rm pipe"));
    stage.commit();
    assert_eq!(tree(&stage.at("host")), tree(&stage.at("seen")));
    let again = stage.store().commit(false);
    assert!(matches!(
        again,
        Err(OverlayError::Decided { committed: true })
    ));
    let discard = stage.store().discard();
    assert!(matches!(
        discard,
        Err(OverlayError::Decided { committed: true })
    ));
    let changes = stage.changes();
    assert_eq!(
        (changes.fate, changes.totals),
        (OverlayOutcome::Committed, [9, 5, 8])
    );
    let left: Vec<_> = fs::read_dir(stage.store_dir())
        .expect("the store")
        .collect();
    assert_eq!(left.len(), 2, "the record and the lock: {left:?}");
}

/// The kernel marks only the topmost directory of a recreated tree as opaque.
#[test]
fn directories_below_an_opaque_one_hide_what_had_their_names() {
    let cases = [
        // The tree, what the command does, the changes.
        (
            "mkdir -p 'b.c' 'a b/a/a'; printf 0 >b.c/a",
            "mv -T 'a b' b.c/b; mkdir -p 'a b/a'; printf 0 >'a b/a/b'",
            vec!["-a b/a/a", "+a b/a/b", "+b.c/b", "+b.c/b/a", "+b.c/b/a/a"],
        ),
        (
            "mkdir -p d/e/f/g; echo x>d/e/f/x; echo y>d/e/f/y; echo z>d/e/f/g/z",
            "rm -r d; mkdir -p d/e/f; echo x>d/e/f/x",
            vec!["-d/e/f/g", "-d/e/f/g/z", "-d/e/f/y"],
        ),
        (
            "mkdir -p d/e/f; echo y>d/e/f/y",
            "mkdir -p new/e/f; echo n>new/e/f/n; rm -r d; mv new d",
            vec!["+d/e/f/n", "-d/e/f/y"],
        ),
        (
            "mkdir -p d/e/f; echo y>d/e/f/y",
            "rm -r d; mkdir d; mkdir -p new/e/f; mv new/e d/e; rmdir new",
            vec!["-d/e/f/y"],
        ),
        // A directory next to an opaque one is still merged.
        (
            "mkdir -p d/e z/e; echo y>d/e/y; echo y>z/e/y",
            "rm -r d; mkdir -p d/e; echo n>z/e/n",
            vec!["-d/e/y", "+z/e/n"],
        ),
    ];
    for (made, done, expected) in cases {
        let stage = OverlayFixture::new(made);
        stage.command(done);
        assert_eq!(stage.marks(), expected, "{done}");
        stage.commit();
        assert_eq!(tree(&stage.at("host")), tree(&stage.at("seen")), "{done}");
    }
}

#[test]
fn a_discard_leaves_the_host_alone() {
    let stage = OverlayFixture::new(TREE);
    let before = tree(&stage.at("host"));
    stage.command(WORK);
    stage.store().discard().expect("a discard");
    assert_eq!(tree(&stage.at("host")), before);
    let decided = stage.store().commit(false);
    assert!(matches!(
        decided,
        Err(OverlayError::Decided { committed: false })
    ));
    assert_eq!(stage.changes().fate, OverlayOutcome::Discarded);
}

#[test]
fn every_way_in_which_the_host_can_differ_is_a_conflict_and_nothing_is_committed() {
    let cases = [
        ("echo other>f", "f", ConflictReason::Modified),
        ("chmod 755 mode", "mode", ConflictReason::Modified),
        ("cp f f2; mv f2 f", "f", ConflictReason::Replaced),
        ("rm f", "f", ConflictReason::Vanished),
        ("mkdir new", "new", ConflictReason::Appeared),
        ("echo late>gone/late", "gone/late", ConflictReason::Appeared),
        ("touch gone/g", "gone/g", ConflictReason::Modified),
        (
            "mv opq o2; mkdir opq; echo o>opq/o",
            "opq",
            ConflictReason::Replaced,
        ),
        (
            "ln -s third third; mv -T third link",
            "link",
            ConflictReason::Replaced,
        ),
    ];
    for (script, path, reason) in cases {
        let stage = OverlayFixture::new(TREE);
        stage.command(WORK);
        stage.on_host(script);
        let before = tree(&stage.at("host"));
        let conflicts = stage.conflicts();
        let actual = conflicts.iter().any(|it| *it == (path.to_owned(), reason));
        assert!(actual, "{script}: {conflicts:?}");
        assert_eq!(tree(&stage.at("host")), before, "{script}");
        assert_eq!(stage.changes().fate, OverlayOutcome::Open);
    }
}

#[test]
fn what_the_command_did_not_touch_may_change() {
    let stage = OverlayFixture::new(TREE);
    stage.command("echo b>>f");
    stage.on_host("echo n>another; echo z>d/x; rm -r opq");
    stage.commit();
    assert_eq!(fs::read(stage.host("f")).expect("f"), b"a\nb\n");
    assert!(stage.host("another").exists());
}

#[test]
fn times_modes_and_attributes_are_kept_and_privileges_are_not() {
    let stage = OverlayFixture::new("echo a>f; chmod 644 f");
    stage.command(
        "echo b>f; touch -d '2001-02-03 04:05:06.789' f; chmod 6755 f; mkdir s; chmod 3777 s",
    );
    stage.commit();
    let f = fs::metadata(stage.host("f")).expect("f");
    assert_eq!(f.mode() & 0o7777, 0o755);
    assert_eq!(f.mtime_nsec(), 789_000_000);
    let s = fs::metadata(stage.host("s")).expect("s");
    assert_eq!(s.mode() & 0o7777, 0o1777);
    let names = rustix::fs::listxattr(stage.host("f"), &mut [0_u8; 0][..]).expect("attributes");
    assert_eq!(names, 0, "no mark of the kernel is left");
}

#[test]
fn another_file_system_is_copied_to_with_its_holes() {
    let memory = std::path::Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let mut stage = OverlayFixture::new("echo a>f");
    let other = tempfile::Builder::new()
        .tempdir_in(memory)
        .expect("a directory");
    let host = fs::canonicalize(other.path()).expect("a path");
    fs::remove_dir_all(stage.at("host")).expect("removed");
    fs::create_dir(host.join("w")).expect("a directory");
    stage = stage.with_host(&host.join("w"));
    stage.on_host("echo a>f");
    stage.command("echo b>>f; truncate -s 64M hole; printf x | dd of=hole bs=1 seek=40000000 conv=notrunc status=none; chmod 640 f");
    stage.commit();
    let hole = fs::metadata(stage.host("hole")).expect("hole");
    assert_eq!(hole.len(), 64 * 1024 * 1024);
    assert!(
        hole.blocks() * 512 < 1024 * 1024,
        "{} blocks",
        hole.blocks()
    );
    assert_eq!(fs::read(stage.host("f")).expect("f"), b"a\nb\n");
    assert_eq!(tree(&stage.at("host")), tree(&stage.at("seen")));
}

#[test]
fn a_diff_is_one_that_git_applies() {
    let stage = OverlayFixture::new(
        "seq 1 40 >lines; printf 'no end' >tail; echo gone >gone; echo x>mode; printf 'a\\0b' >bin",
    );
    let copy = stage.at("copy");
    super::stage::shell(&stage.at("."), "cp -a host copy");
    stage.command(
        "sed -i 's/^7$/seven/; 30d' lines; echo more >>tail; rm gone; chmod 755 mode; \
         echo new >'odd \"name'; ln -s lines to; mkdir sub; printf '' >sub/empty; printf '\\0' >>bin",
    );
    let (diff, truncated, _) = stage.store().diff(&[], 1 << 20).expect("a diff");
    assert!(!truncated);
    assert!(
        diff.contains("Binary files a/bin and b/bin differ"),
        "{diff}"
    );
    let text = stage
        .store()
        .diff(
            &[
                "lines".into(),
                "tail".into(),
                "gone".into(),
                "mode".into(),
                "to".into(),
                "sub".into(),
                "odd \"name".into(),
            ],
            1 << 20,
        )
        .expect("a diff")
        .0;
    fs::write(stage.at("patch"), &text).expect("a patch");
    super::stage::shell(
        &copy,
        "git init -q . && git apply ../patch && rm -r .git || touch FAILED",
    );
    let (mut applied, mut seen) = (tree(&copy), tree(&stage.at("seen")));
    applied.remove(b"bin".as_slice());
    seen.remove(b"bin".as_slice());
    assert_eq!(applied, seen, "{text}");
    let (short, truncated, _) = stage.store().diff(&["lines".into()], 60).expect("a diff");
    assert!(
        truncated && short.len() <= 60 && short.ends_with('\n'),
        "{short}"
    );
}

#[test]
fn protected_paths_are_refused_except_those_made_by_the_sandbox() {
    let made = OverlayFixture::new("mkdir .git").protecting(".git/hooks");
    made.command("mkdir .git/hooks; echo a>f");
    assert_eq!(made.marks(), ["+f"]);
    made.commit();
    assert!(!made.host(".git/hooks").exists());
    let stage = OverlayFixture::new("mkdir -p .git/hooks").protecting(".git/hooks");
    stage.command("echo a>f; echo evil>.git/hooks/pre-commit");
    let refused = stage.store().commit(false);
    assert!(
        matches!(refused, Err(OverlayError::Protected { path }) if path == ByteString::from(".git/hooks/pre-commit"))
    );
    assert!(!stage.host("f").exists());
}

#[test]
fn nothing_to_commit_is_a_commit() {
    let stage = OverlayFixture::new(TREE);
    stage.command("cat f; touch f");
    assert!(stage.marks().is_empty());
    assert!(matches!(
        stage.store().commit(false),
        Ok(CommitOutcome::Committed(_))
    ));
}

#[test]
fn a_store_that_was_never_made_is_none() {
    let stage = OverlayFixture::new("");
    let none = crate::overlay::OverlayStore::open(&stage.store_dir());
    assert!(matches!(none, Err(OverlayError::None)));
}

#[test]
fn a_bare_repository_of_the_host_is_known_by_what_the_host_has() {
    let stage =
        OverlayFixture::new("mkdir -p bare/objects bare/refs bare/hooks; echo x > bare/HEAD");
    stage.command(
        "echo '[core]' > bare/config; echo 'pager=x' >> bare/config; echo > bare/hooks/update",
    );
    let autorun = stage.changes().autorun;
    let paths: Vec<_> = autorun.found.iter().map(|it| it.path.to_string()).collect();
    assert_eq!(paths, ["bare/config", "bare/hooks/update"]);
}

#[test]
fn what_runs_unasked_is_committed_when_that_is_allowed() {
    let stage =
        OverlayFixture::new("mkdir .git .vscode; echo 1 > .envrc; echo 1 > .vscode/tasks.json");
    stage.command(
        "echo 2 > .envrc; touch .vscode/tasks.json; mkdir -p a/.git; printf '[core]\nfsmonitor=x' > a/.git/config; \
         echo x > plain",
    );
    let expected = [".envrc", "a/.git/config"];
    let paths = |report: &ostler_model::AutorunReport| -> Vec<String> {
        report.found.iter().map(|it| it.path.to_string()).collect()
    };
    assert_eq!(paths(&stage.changes().autorun), expected);
    assert_eq!(
        paths(
            &stage
                .store()
                .diff(&["plain".into()], 1_000)
                .expect("a diff")
                .2
                .autorun
        ),
        expected
    );
    match stage.store().commit(false) {
        Ok(CommitOutcome::Autorun(refused)) => assert_eq!(paths(&refused.autorun), expected),
        other => panic!("{other:?}"),
    }
    assert!(!stage.host("plain").exists());
    match stage.store().commit(true) {
        Ok(CommitOutcome::Committed(changes)) => assert_eq!(paths(&changes.autorun), expected),
        other => panic!("{other:?}"),
    }
    assert!(stage.host("plain").exists());
}
