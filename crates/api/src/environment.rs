//! The environment of an execution.

use ostler_model::ByteString;
use serde::{Deserialize, Serialize};

/// Which variables an execution was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentBody {
    /// Whether it got the whole environment of the client that started it; otherwise only base
    /// variables such as `PATH` and `HOME`. Those are stored nowhere.
    pub inherit: bool,
    /// The variables of its request, by name.
    pub variables: Vec<VariableBody>,
}

/// One variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableBody {
    /// Its name.
    pub name: ByteString,
    /// Its value; absent where it is secret: a secret's own, or one whose name says so
    /// (`…TOKEN`, `…PASSWORD`, …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<ByteString>,
}
