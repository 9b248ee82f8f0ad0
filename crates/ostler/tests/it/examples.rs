//! The examples do what their descriptions say, run as separate programs.

use std::path::Path;
use std::process::Command;

/// The output of an example, given its state directory; it must succeed.
fn run_example(name: &str, state: &Path) -> String {
    // Examples are built beside the tests, in the profile's `examples` directory.
    let deps = std::env::current_exe().expect("a test has a path");
    let profile = deps
        .parent()
        .and_then(Path::parent)
        .expect("target/profile");
    let output = Command::new(profile.join("examples").join(name))
        .arg(state)
        // Without the developer's own settings.
        .env("HOME", state)
        .output()
        .expect("the example was built");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_example_runs() {
    let state = tempfile::TempDir::new().expect("a directory");
    let stdout = run_example("embed", state.path());
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].ends_with(": failed"), "{stdout}");
    assert!(lines[1].ends_with("Stdout hello"), "{stdout}");
    assert!(lines[2].contains("said tick at "), "{stdout}");
    assert!(
        lines[3].contains("stopped (seen enough), ended by SIGTERM"),
        "{stdout}"
    );
}

#[test]
fn the_example_of_terminals_runs() {
    let state = tempfile::TempDir::new().expect("a directory");
    let stdout = run_example("terminal", state.path());
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[..2], ["exit status 3 in /usr", "hello from /usr"]);
    assert!(lines[2].ends_with(" bytes, exit code 3"), "{stdout}");
    assert_eq!(
        lines[3..],
        ["100x30: roses are red", "roses are red", "violets"]
    );
}
