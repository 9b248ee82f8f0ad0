//! Probes the machine at hand, whatever it supports: failures have reasons, and the results a test
//! can know must be right.

use std::fs;

use ostler_model::sandbox_spec::SandboxSpec;
use ostler_model::{ByteString, Capability};

use super::cache::FsProbe;
use super::fs_type::parse_fs_type;

fn confinement(workspace: &std::path::Path, overlay: bool) -> SandboxSpec {
    let path = workspace.to_str().expect("test paths are text");
    SandboxSpec {
        workspace: Some(ByteString::from(path.to_owned())),
        overlay,
        ..SandboxSpec::default()
    }
}

#[test]
fn what_is_missing_has_its_reason_and_nothing_is_left_behind() {
    let (workspace, state) = (
        tempfile::tempdir().expect("made"),
        tempfile::tempdir().expect("made"),
    );
    let survey = FsProbe::new(state.path().to_owned());
    let wanted = confinement(workspace.path(), true);
    let missing = survey.missing(&wanted);
    for it in &missing {
        assert!(
            it.reason
                .starts_with(workspace.path().to_str().expect("text")),
            "{it:?}"
        );
    }
    assert_eq!(survey.missing(&wanted), missing, "asked again");
    for directory in [workspace.path(), state.path()] {
        assert_eq!(fs::read_dir(directory).expect("there").count(), 0);
    }
}

#[test]
fn proc_is_neither_mapped_nor_below_an_overlay() {
    let wanted = confinement(std::path::Path::new("/proc"), true);
    let state = tempfile::tempdir().expect("made");
    let missing = FsProbe::new(state.path().to_owned()).missing(&wanted);
    let names: Vec<Capability> = missing.iter().map(|it| it.ability).collect();
    if rustix::process::geteuid().is_root() {
        assert!(names.contains(&Capability::MappedWorkspace), "{missing:?}");
    }
    assert!(names.contains(&Capability::Overlay), "{missing:?}");
}

#[test]
fn restrictions_that_are_done_without_are_not_probed() {
    let mut wanted = confinement(std::path::Path::new("/proc"), true);
    wanted.without = vec![
        Capability::Overlay,
        Capability::MappedWorkspace,
        Capability::Landlock,
    ];
    assert_eq!(super::probe_filesystems(&wanted), []);
}

#[test]
fn what_is_not_there_misses_nothing() {
    let nowhere = std::path::Path::new("/nowhere/at/all");
    assert_eq!(super::probe_filesystems(&confinement(nowhere, true)), []);
}

#[test]
fn the_kind_of_a_file_system_by_its_number() {
    let text = "35 31 8:1 /box /data rw shared:9 - ext4 /dev/sda1 rw\n";
    assert_eq!(parse_fs_type(text, 8, 1).as_deref(), Some("ext4"));
    assert_eq!(parse_fs_type(text, 8, 2), None);
}
