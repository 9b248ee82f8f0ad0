//! What a front brings along, and what one call sees.

use std::time::Duration;

use super::desk::Desk;
use super::link::Link;
use super::profile::ToolSet;
use ostler_engine::{Begun, Engine, Info, RetentionRequest, StartRequest};
use ostler_model::{Caller, Command, IsolationLevel, Text};

/// What the front of a client told in its hello.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrontContext {
    /// Its working directory; relative directories in calls start here.
    pub cwd: Text,
    /// Its environment, of which D8 keeps the base names.
    pub env: Vec<(Text, Text)>,
    /// The tools it is offered.
    pub tools: ToolSet,
    /// The only programs it may run, besides what the engine's own list says.
    pub allowed: Option<Vec<String>>,
    /// The encoding of starts that name none; none takes the engine's.
    pub encoding: Option<String>,
    /// How long what it starts is kept after its end; none takes the engine's.
    pub retention: Option<Duration>,
    /// How far starts that do not say are walled off; none takes the engine's setting.
    pub isolation: Option<IsolationLevel>,
}

/// Who is at the other end of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its identity, and the session it speaks for.
    pub caller: Caller,
    /// What it brought along.
    pub front: FrontContext,
}

/// What one tool call works with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) engine: &'a Engine,
    pub(super) caller: &'a Caller,
    pub(super) front: &'a FrontContext,
    pub(super) desk: &'a Desk,
    pub(super) link: &'a Link<'a>,
}

impl Call<'_> {
    /// What is known of the execution with this id.
    pub(super) fn info(&self, id: &str) -> Result<Info, ostler_engine::Error> {
        self.engine.info(self.caller, id)
    }

    /// The answer names its id: with the answer it is given out (F7). Tools give out what they
    /// began only through this.
    pub(super) fn give_out(&self, begun: Begun) -> Info {
        self.link.name(begun)
    }

    /// This answer shows `info`: its end need not be told again (F8).
    pub(super) fn told(&self, info: &Info) {
        self.desk.news().told(self.caller, info);
    }

    /// Where the output begins that this client was not shown yet; none where it was shown
    /// nothing.
    pub(super) fn unread(&self, info: &Info) -> Option<u64> {
        let position = self.desk.read_positions().of(self.caller, info.id);
        position.map(|offset| offset.min(info.output_end))
    }

    /// This answer shows a stretch of output.
    pub(super) fn showed(&self, info: &Info, stretch: (u64, u64)) {
        let positions = self.desk.read_positions();
        positions.advance(self.caller, info.id, stretch);
    }

    /// A start with what the front brings to each of its starts; tools add what was asked.
    pub(super) fn start(&self, command: Command, directory: &str) -> StartRequest {
        let mut request = StartRequest::new(command, self.directory(directory));
        request.base_env.clone_from(&self.front.env);
        request.allowed.clone_from(&self.front.allowed);
        request.encoding.clone_from(&self.front.encoding);
        request.level = self.front.isolation;
        if let Some(retention) = self.front.retention {
            request.retention = RetentionRequest::For(retention);
        }
        request
    }

    /// A directory as the front sees it.
    pub(super) fn directory(&self, given: &str) -> Text {
        let path = self.front.cwd.as_path().join(given);
        Text::from(path)
    }
}
