//! Signal numbers and names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A POSIX signal, 1 to 64 as Linux numbers them (signal(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "i32", into = "i32")]
pub struct Signal(i32);

/// The error for a string or number that is not a signal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no signal: give a name such as TERM or SIGINT, or a number from 1 to 64")]
pub struct SignalError(String);

const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

impl Signal {
    /// Hang-up (`SIGHUP`).
    pub const HUP: Self = Self(1);
    /// Interrupt, as Ctrl-C sends it (`SIGINT`).
    pub const INT: Self = Self(2);
    /// Kill, which cannot be caught (`SIGKILL`).
    pub const KILL: Self = Self(9);
    /// Termination request (`SIGTERM`).
    pub const TERM: Self = Self(15);
    /// Continue after a stop (`SIGCONT`).
    pub const CONT: Self = Self(18);

    /// The names without their prefix, in the order of their numbers from 1 on.
    pub const NAMES: [&str; 31] = NAMES;

    /// The signal number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The name with its prefix, for example `SIGTERM`; `SIG40` for a number without a name.
    #[must_use]
    pub fn name(self) -> String {
        usize::try_from(self.0 - 1)
            .ok()
            .and_then(|index| NAMES.get(index))
            .map_or_else(|| format!("SIG{}", self.0), |name| format!("SIG{name}"))
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl From<Signal> for i32 {
    fn from(signal: Signal) -> Self {
        signal.0
    }
}

impl TryFrom<i32> for Signal {
    type Error = SignalError;

    fn try_from(number: i32) -> Result<Self, SignalError> {
        if (1..=64).contains(&number) {
            Ok(Self(number))
        } else {
            Err(SignalError(number.to_string()))
        }
    }
}

impl FromStr for Signal {
    type Err = SignalError;

    fn from_str(text: &str) -> Result<Self, SignalError> {
        let invalid = || SignalError(text.to_owned());
        let upper = text.trim().to_ascii_uppercase();
        let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
        if let Ok(number) = bare.parse::<i32>() {
            return Self::try_from(number).map_err(|_| invalid());
        }
        let index = NAMES
            .iter()
            .position(|name| *name == bare)
            .ok_or_else(invalid)?;
        i32::try_from(index)
            .map(|index| Self(index + 1))
            .map_err(|_| invalid())
    }
}
