//! The example does what it says, as a program of its own.

use std::path::Path;
use std::process::Command;

#[test]
fn the_example_runs() {
    let state = tempfile::TempDir::new().expect("a directory");
    // Examples are built beside the tests, in the profile's `examples` directory.
    let deps = std::env::current_exe().expect("a test has a path");
    let profile = deps
        .parent()
        .and_then(Path::parent)
        .expect("target/profile");
    let output = Command::new(profile.join("examples/embed"))
        .arg(state.path())
        .output()
        .expect("the example was built");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].ends_with(": failed"), "{stdout}");
    assert!(lines[1].ends_with("Stdout hello"), "{stdout}");
    assert!(lines[2].contains("said tick at "), "{stdout}");
    assert!(
        lines[3].contains("stopped (seen enough), ended by SIGTERM"),
        "{stdout}"
    );
}
