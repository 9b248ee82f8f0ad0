//! Workspaces under an overlay.

use std::fs;

use ostler_sandbox::OverlayDirs;

use super::support::{JailFixture, run_with};

#[test]
fn writes_go_to_the_upper_directory_and_the_workspace_stays() {
    let fixture = JailFixture::new();
    fs::write(fixture.workspace.join("old"), "old").unwrap();
    fs::write(fixture.workspace.join("gone"), "gone").unwrap();
    let (upper, work) = (fixture.outside.join("upper"), fixture.outside.join("work"));
    fs::create_dir(&upper).unwrap();
    fs::create_dir(&work).unwrap();
    let mut confinement = fixture.confinement();
    confinement.overlay = true;
    confinement.protect = vec![".git/hooks".into()];
    let overlay = OverlayDirs {
        upper: &upper,
        work: &work,
    };
    let script = "cat old && echo new > new && echo more >> old && rm gone && mkdir -p d/e && ls";
    let ran = run_with(
        confinement,
        script,
        &fixture.workspace,
        &fixture.home,
        Some(overlay),
    );
    assert_eq!(ran.unwrap().ok(), "oldd\nnew\nold\n");
    assert_eq!(
        fs::read_to_string(fixture.workspace.join("old")).unwrap(),
        "old"
    );
    assert!(fixture.workspace.join("gone").exists() && !fixture.workspace.join("new").exists());
    assert_eq!(fs::read_to_string(upper.join("new")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(upper.join("old")).unwrap(), "oldmore\n");
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    assert!(
        fs::symlink_metadata(upper.join("gone"))
            .unwrap()
            .file_type()
            .is_char_device()
    );
    let own = fs::metadata(&fixture.workspace).unwrap().uid();
    assert_eq!(fs::metadata(upper.join("new")).unwrap().uid(), own);
}

#[test]
fn an_overlay_without_its_directories_is_an_error() {
    let fixture = JailFixture::new();
    let mut confinement = fixture.confinement();
    confinement.overlay = true;
    let error = fixture.try_sh(confinement, "true").unwrap_err().to_string();
    assert!(error.starts_with("overlay"), "{error}");
}
