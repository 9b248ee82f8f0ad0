//! What a front brings along, and what one call sees.

use std::str::FromStr;
use std::time::Duration;

use ostler_engine::{Engine, Info};
use ostler_model::{Caller, Text};
use thiserror::Error;

/// What the front of a client told in its hello.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrontContext {
    /// Its working directory; relative directories in calls start here.
    pub cwd: Text,
    /// Its environment, of which D8 keeps the base names.
    pub env: Vec<(Text, Text)>,
    /// The tools it is offered.
    pub profile: Profile,
    /// The only programs it may run, besides what the engine's own list says.
    pub allowed: Option<Vec<String>>,
    /// The encoding of starts that name none; none takes the engine's.
    pub encoding: Option<String>,
    /// How long what it starts is kept after its end; none takes the engine's.
    pub retention: Option<Duration>,
}

/// A set of tools (F2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// The seven tools of document 000.
    #[default]
    Command,
}

/// A word that is no profile.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no tool profile; allowed: command")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        match text.trim() {
            "command" => Ok(Self::Command),
            other => Err(UnknownProfile(other.to_owned())),
        }
    }
}

/// What one tool call works with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) engine: &'a Engine,
    pub(super) caller: &'a Caller,
    pub(super) front: &'a FrontContext,
}

impl Call<'_> {
    /// What is known of the execution with this id.
    pub(super) fn info(&self, id: &str) -> Result<Info, ostler_engine::Error> {
        self.engine.info(self.caller, id)
    }

    /// A directory as the front sees it.
    pub(super) fn directory(&self, given: &str) -> Text {
        let path = self.front.cwd.as_path().join(given);
        Text::from(path)
    }
}
