//! On the machine at hand, whatever it can do: answers come with reasons, and the things a
//! test can know must be right.

use std::fs;

use ostler_model::confinement::Confinement;
use ostler_model::{Ability, Text};

use super::look::Survey;
use super::sources::kind_in;

fn confinement(workspace: &std::path::Path, overlay: bool) -> Confinement {
    let path = workspace.to_str().expect("test paths are text");
    Confinement {
        workspace: Some(Text::from(path.to_owned())),
        overlay,
        ..Confinement::default()
    }
}

#[test]
fn what_is_missing_has_its_reason_and_nothing_is_left_behind() {
    let (workspace, state) = (
        tempfile::tempdir().expect("made"),
        tempfile::tempdir().expect("made"),
    );
    let survey = Survey::new(state.path().to_owned());
    let wanted = confinement(workspace.path(), true);
    let missing = survey.look(&wanted);
    for it in &missing {
        assert!(
            it.reason
                .starts_with(workspace.path().to_str().expect("text")),
            "{it:?}"
        );
    }
    assert_eq!(survey.look(&wanted), missing, "asked again");
    for directory in [workspace.path(), state.path()] {
        assert_eq!(fs::read_dir(directory).expect("there").count(), 0);
    }
}

#[test]
fn proc_is_neither_mapped_nor_below_an_overlay() {
    let wanted = confinement(std::path::Path::new("/proc"), true);
    let state = tempfile::tempdir().expect("made");
    let missing = Survey::new(state.path().to_owned()).look(&wanted);
    let names: Vec<Ability> = missing.iter().map(|it| it.ability).collect();
    if rustix::process::geteuid().is_root() {
        assert!(names.contains(&Ability::MappedWorkspace), "{missing:?}");
    }
    assert!(names.contains(&Ability::Overlay), "{missing:?}");
}

#[test]
fn walls_that_are_done_without_are_not_asked_about() {
    let mut wanted = confinement(std::path::Path::new("/proc"), true);
    wanted.without = vec![
        Ability::Overlay,
        Ability::MappedWorkspace,
        Ability::Landlock,
    ];
    assert_eq!(super::survey(&wanted), []);
}

#[test]
fn what_is_not_there_misses_nothing() {
    let nowhere = std::path::Path::new("/nowhere/at/all");
    assert_eq!(super::survey(&confinement(nowhere, true)), []);
}

#[test]
fn the_kind_of_a_file_system_by_its_number() {
    let text = "35 31 8:1 /box /data rw shared:9 - ext4 /dev/sda1 rw\n";
    assert_eq!(kind_in(text, (8, 1)).as_deref(), Some("ext4"));
    assert_eq!(kind_in(text, (8, 2)), None);
}
