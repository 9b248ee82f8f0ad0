//! Exit codes and signals, with bash as the oracle.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::support::{BackendFixture, TestCase, argv};

pub(crate) const CASES: &[TestCase] = &[("ends_are_told_as_bash_sees_them", as_bash)];

fn as_bash() {
    let fixture = BackendFixture::new();
    let codes = [0, 1, 2, 42, 126, 127, 128, 130, 255].map(|code| format!("exit {code}"));
    let signals = [1, 2, 3, 6, 9, 10, 11, 13, 14, 15].map(|signal| format!("kill -{signal} $$"));
    let others = [
        "true",
        "false",
        "exit 256",
        "exit -1",
        "does-not-exist",
        "(exit 9)",
        "kill -34 $$",
    ];
    let others = others.map(str::to_owned);
    for script in codes.iter().chain(&signals).chain(&others) {
        let words = ["/bin/bash", "-c", script];
        let bash = Command::new(words[0])
            .args(&words[1..])
            .output()
            .expect("bash runs");
        let done = fixture.run(argv(&words));
        assert_eq!(done.code(), bash.status.code(), "{script}");
        assert_eq!(done.signal(), bash.status.signal(), "{script}");
    }
}
