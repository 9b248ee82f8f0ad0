//! Lines that the host reads from the console.

use std::io::Write as _;
use std::process::ExitCode;

/// Why a property does not hold.
pub(crate) type Outcome = Result<(), String>;

/// The results so far.
#[derive(Debug)]
pub(crate) struct Report {
    role: String,
    passed: u32,
    failed: u32,
}

impl Report {
    pub(crate) fn new(role: &str) -> Self {
        Self {
            role: role.to_owned(),
            passed: 0,
            failed: 0,
        }
    }

    /// Prints whether a property holds.
    pub(crate) fn that(&mut self, what: &str, outcome: Outcome) {
        let role = &self.role;
        match outcome {
            Ok(()) => {
                self.passed += 1;
                say(&format!("PASS {role}: {what}"));
            }
            Err(why) => {
                self.failed += 1;
                say(&format!("FAIL {role}: {what}: {why}"));
            }
        }
    }

    /// The closing line.
    pub(crate) fn close(self) -> ExitCode {
        let Self {
            role,
            passed,
            failed,
        } = self;
        say(&format!("GUEST {role}: {passed} passed, {failed} failed"));
        ExitCode::from(u8::from(failed > 0))
    }
}

/// Success, or what was observed instead.
pub(crate) fn holds(is: bool, seen: impl FnOnce() -> String) -> Outcome {
    if is { Ok(()) } else { Err(seen()) }
}

fn say(line: &str) {
    let mut console = std::io::stdout().lock();
    let _nobody_listens = writeln!(console, "{line}").and_then(|()| console.flush());
}
