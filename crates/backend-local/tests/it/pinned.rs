//! Starts that depend on the content of files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use ostler_backend::{LaunchPlan, LeaderOutcome, PinnedFile};
use ostler_model::ByteString;
use tempfile::TempDir;

use crate::support::{BackendFixture, FinishedRun, TestCase, argv};

pub(crate) const CASES: &[TestCase] = &[
    ("what_is_as_it_was_runs", unchanged),
    ("a_program_that_changed_is_not_born", changed_program),
    ("a_script_that_changed_is_not_born", changed_script),
    ("a_program_that_nothing_pins_is_not_born", unpinned_program),
    (
        "a_pinned_program_keeps_its_name_and_descriptors",
        name_and_descriptors,
    ),
    ("a_program_somebody_writes_to_is_not_born", written_program),
];

fn pin(path: &Path) -> PinnedFile {
    let meta = fs::metadata(path).expect("there");
    PinnedFile {
        path: ByteString::from(path),
        dev: meta.dev(),
        ino: meta.ino(),
        size: meta.len(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
    }
}

fn put(directory: &TempDir, name: &str, text: &[u8]) -> String {
    let path = directory.path().join(name);
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("set");
    path.to_str().expect("text").to_owned()
}

/// A plan whose program and first argument are pinned to their current state.
fn pinned(words: &[&str]) -> LaunchPlan {
    let mut plan = argv(words);
    let files = words
        .iter()
        .take(2)
        .map(Path::new)
        .filter(|it| it.is_file());
    plan.pinned_files = files.map(pin).collect();
    plan
}

fn why(done: &FinishedRun) -> String {
    match &done.record.outcome {
        LeaderOutcome::SpawnFailed { message, .. } => message.clone(),
        LeaderOutcome::Ended { .. } => panic!("it ran: {}", done.out()),
        LeaderOutcome::ContainerLost => panic!("not in a container"),
    }
}

fn tool() -> Vec<u8> {
    fs::read("/usr/bin/cat").expect("there")
}

fn unchanged() {
    let (fixture, directory) = (BackendFixture::new(), TempDir::new().expect("a directory"));
    let script = put(&directory, "script", b"#!/bin/sh\necho ran $0\n");
    let ran = fixture.run(pinned(&[&script]));
    assert_eq!(ran.out(), format!("ran {script}\n"));
    let ran = fixture.run(pinned(&["/bin/sh", &script]));
    assert_eq!(ran.out(), format!("ran {script}\n"));
    let program = put(&directory, "tool", &tool());
    let ran = fixture.run(pinned(&[&program]));
    assert_eq!(ran.code(), Some(0));
}

fn changed_program() {
    let (fixture, directory) = (BackendFixture::new(), TempDir::new().expect("a directory"));
    let program = put(&directory, "tool", &tool());
    let plan = pinned(&[&program, "/dev/null"]);
    let other = put(&directory, "other", &tool());
    fs::rename(other, &program).expect("renamed");
    assert!(why(&fixture.run(plan)).contains("tool changed after a person agreed"));
}

fn changed_script() {
    let (fixture, directory) = (BackendFixture::new(), TempDir::new().expect("a directory"));
    let script = put(&directory, "script", b"echo one\n");
    let plan = pinned(&["/bin/sh", &script]);
    put(&directory, "script", b"echo two\n");
    assert!(why(&fixture.run(plan)).contains("script changed after a person agreed"));
}

fn unpinned_program() {
    let (fixture, directory) = (BackendFixture::new(), TempDir::new().expect("a directory"));
    let script = put(&directory, "script", b"echo one\n");
    let mut plan = argv(&["/bin/sh", &script]);
    plan.pinned_files = vec![pin(Path::new(&script))];
    assert!(why(&fixture.run(plan)).contains("/bin/sh changed"));
}

fn name_and_descriptors() {
    let (fixture, directory) = (BackendFixture::new(), TempDir::new().expect("a directory"));
    let program = put(&directory, "tool", &fs::read("/usr/bin/ls").expect("there"));
    let ran = fixture.run(pinned(&[&program, "/proc/self/fd"]));
    assert_eq!(
        ran.out().split_whitespace().count(),
        4,
        "0, 1, 2 and its own: {}",
        ran.out()
    );
    let program = put(
        &directory,
        "tool",
        &fs::read("/usr/bin/readlink").expect("there"),
    );
    let ran = fixture.run(pinned(&[&program, "/proc/self/exe"]));
    assert_eq!(ran.out(), format!("{program}\n"));
}

/// The content is unchanged, but a process has it open for writing.
fn written_program() {
    let (fixture, directory) = (BackendFixture::new(), TempDir::new().expect("a directory"));
    let program = put(&directory, "script", b"#!/bin/sh\necho ran\n");
    let plan = pinned(&[&program]);
    let writer = fs::File::options()
        .write(true)
        .open(&program)
        .expect("opened");
    let done = fixture.run(plan);
    assert!(why(&done).contains("Text file busy"), "{}", why(&done));
    drop(writer);
    assert_eq!(fixture.run(pinned(&[&program])).out(), "ran\n");
}
