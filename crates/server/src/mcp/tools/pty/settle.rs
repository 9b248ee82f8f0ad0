//! What a call waits for before it answers.

use std::time::Duration;

use ostler_engine::{Info, SentInput, WaitEnd, WaitFor, Waited};
use ostler_journal::Pattern;
use ostler_model::{Cursor, ErrorCode};
use tokio::time::Instant;

use super::activity::{Activity, Meter};
use super::session;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::progress::Of;
use crate::mcp::reply::Interrupted;
use crate::mcp::tools::core::{WAIT_LIMIT_MS, expression};
use crate::mcp::waiting;
use crate::params::{Arguments, Kind, Parameter};

/// Quiet after which a full-screen program counts as settled, in milliseconds.
const DRAWN_MS: u64 = 250;
/// Quiet after which anything counts as settled, in milliseconds.
const QUIET_MS: u64 = 1_000;
/// Quiet for `until` "idle", in milliseconds.
const IDLE_MS: u64 = 1_000;
/// How long a call waits for something it named, unless it says otherwise.
const NAMED_WAIT: Duration = Duration::from_secs(30);

pub(super) const UNTIL: Parameter = Parameter::optional(
    "until",
    Kind::Choice(&["settled", "output", "prompt", "idle", "exit", "pattern"]),
    "",
);
pub(super) const PATTERN: Parameter =
    Parameter::optional("pattern", Kind::Text, "Perl-style, on new lines");
pub(super) const WAIT_MS: Parameter =
    Parameter::optional("wait_ms", Kind::Integer(0, WAIT_LIMIT_MS), "At most");

/// What is waited for.
#[derive(Debug, Clone)]
pub(in crate::mcp::tools) enum Until {
    /// It asks for input, has drawn its screen, is silent, or has ended.
    Settled,
    /// One of the engine's reasons.
    Reason(WaitFor),
}

/// A wait: for what, and at most how long.
#[derive(Debug, Clone)]
pub(in crate::mcp::tools) struct Wait {
    pub(in crate::mcp::tools) until: Until,
    pub(in crate::mcp::tools) at_most: Duration,
}

impl Wait {
    /// Reads `until`, `pattern` and `wait_ms`; output up to `from` is not looked at. None where
    /// none of them is given.
    pub(super) fn read(
        arguments: &mut Arguments,
        from: Option<Cursor>,
        settled: Duration,
    ) -> Result<Option<Self>, Failure> {
        let given = ["until", "pattern", "wait_ms"];
        if !given.into_iter().any(|name| arguments.is_given(name)) {
            return Ok(None);
        }
        let at_most = arguments.count("wait_ms").map(Duration::from_millis);
        let until = until(arguments, from)?;
        let standard = match until {
            Until::Settled => settled,
            Until::Reason(_) => NAMED_WAIT,
        };
        Ok(Some(Self {
            at_most: at_most.unwrap_or(standard),
            until,
        }))
    }
}

impl Wait {
    /// The same wait for what this input brings about.
    pub(super) fn after_input(mut self, input: &SentInput) -> Self {
        let from = Cursor {
            offset: input.offset,
            event: 0,
        };
        self.until = match self.until {
            Until::Reason(WaitFor::Pattern(pattern) | WaitFor::PatternAfter(pattern, _)) => {
                Until::Reason(WaitFor::PatternAfterInput(pattern, input.clone()))
            }
            Until::Reason(WaitFor::OutputAfter(_)) => Until::Reason(WaitFor::OutputAfter(from)),
            until @ (Until::Settled | Until::Reason(_)) => until,
        };
        self
    }
}

fn until(arguments: &mut Arguments, from: Option<Cursor>) -> Result<Until, Failure> {
    let pattern = expression(arguments, "pattern")?;
    let word = arguments.text("until");
    let word = word.as_deref().unwrap_or(match pattern {
        Some(_) => "pattern",
        None => "settled",
    });
    let reason = match (word, pattern) {
        ("pattern", Some(pattern)) => matching(pattern, from),
        ("pattern", None) => {
            return Err(Failure::value(
                "until 'pattern' needs parameter 'pattern', a Perl-style expression",
            ));
        }
        (word, Some(_)) => {
            return Err(Failure::value(format!(
                "parameter 'pattern' does not go with until '{word}'; allowed: until 'pattern'"
            )));
        }
        ("output", None) => WaitFor::OutputAfter(from.unwrap_or_default()),
        ("prompt", None) => WaitFor::Prompt,
        ("idle", None) => WaitFor::Idle(Duration::from_millis(IDLE_MS)),
        ("exit", None) => WaitFor::Exit,
        _ => return Ok(Until::Settled),
    };
    Ok(Until::Reason(reason))
}

fn matching(pattern: Pattern, from: Option<Cursor>) -> WaitFor {
    match from {
        Some(from) => WaitFor::PatternAfter(pattern, from),
        None => WaitFor::Pattern(pattern),
    }
}

/// How a wait was over.
#[derive(Debug)]
pub(in crate::mcp::tools) struct Outcome {
    pub(in crate::mcp::tools) waited: Waited,
    /// What the program does, where it printed nothing to the end of the wait.
    pub(in crate::mcp::tools) activity: Option<Activity>,
}

impl From<Waited> for Outcome {
    fn from(waited: Waited) -> Self {
        Self {
            waited,
            activity: None,
        }
    }
}

/// The outcome of the wait that follows a start. Where that failed, the start is answered all the
/// same: it runs, or did, and its id must not be lost.
pub(in crate::mcp::tools) fn of_start(
    waited: Result<Outcome, Interrupted>,
    info: Info,
) -> Result<Outcome, Interrupted> {
    match waited {
        Err(Interrupted::Failed(_)) => Ok(Outcome::from(Waited {
            cursor: info.cursor(),
            why: WaitEnd::Nothing,
            info,
        })),
        waited => waited,
    }
}

/// Waits, never beyond the client's patience. With `after`, a program counts as settled only
/// once it has printed something beyond that position, or asks for input.
pub(in crate::mcp::tools) async fn wait(
    call: Call<'_>,
    id: &str,
    wait: &Wait,
    after: Option<Cursor>,
) -> Result<Outcome, Interrupted> {
    match &wait.until {
        Until::Reason(reason) => {
            let waited = waiting::wait(call, id, reason, Some(wait.at_most)).await;
            let waited = waited.map_err(|interrupted| in_our_words(call, id, interrupted))?;
            Ok(Outcome::from(waited))
        }
        Until::Settled => {
            let patience = call.link.patience();
            let at_most = patience.map_or(wait.at_most, |it| it.min(wait.at_most));
            let settling = settled(call, id, after, at_most);
            Ok(call.link.attend(call, Of::Name(id), settling).await?)
        }
    }
}

/// A session that is gone meanwhile is told as one.
fn in_our_words(call: Call<'_>, id: &str, interrupted: Interrupted) -> Interrupted {
    if let Interrupted::Failed(failure) = &interrupted
        && failure.code == ErrorCode::ProcessNotFound
    {
        return session::failure(call, id, ostler_engine::Error::SessionNotFound).into();
    }
    interrupted
}

/// A question of the program is the surest sign, and comes first; a program that draws its
/// screen is quiet when it has drawn; and long silence is all that others show.
async fn settled(
    call: Call<'_>,
    id: &str,
    after: Option<Cursor>,
    at_most: Duration,
) -> Result<Outcome, Failure> {
    let mut meter = Meter::new(call, id);
    let deadline = Instant::now().checked_add(at_most);
    let drawn = WaitFor::Idle(Duration::from_millis(DRAWN_MS));
    let quiet = WaitFor::Idle(Duration::from_millis(QUIET_MS));
    if let Some(after) = after {
        let output = WaitFor::OutputAfter(after);
        let soon = Instant::now() + Duration::from_millis(DRAWN_MS);
        let mut waited = step(call, id, &output, deadline.map(|it| it.min(soon))).await?;
        if waited.why == WaitEnd::AtMost && deadline.is_none_or(|it| soon < it) {
            meter.begin().await;
            waited = step(call, id, &output, deadline).await?;
        }
        if waited.why == WaitEnd::AtMost {
            let activity = meter.end().await;
            return Ok(Outcome { waited, activity });
        }
        if waited.why != WaitEnd::Output {
            return Ok(waited.into());
        }
    }
    let waited = step(call, id, &drawn, deadline).await?;
    if waited.why != WaitEnd::Idle {
        return Ok(waited.into());
    }
    let view = call.engine.screen(call.caller, id).await;
    if view
        .map_err(|error| session::failure(call, id, error))?
        .alternate
    {
        return Ok(waited.into());
    }
    meter.begin().await;
    let waited = step(call, id, &quiet, deadline).await?;
    let activity = if waited.why == WaitEnd::Idle {
        meter.end().await
    } else {
        None
    };
    Ok(Outcome { waited, activity })
}

/// Until `reason` is so, it asks for input, or has ended.
async fn step(
    call: Call<'_>,
    id: &str,
    reason: &WaitFor,
    deadline: Option<Instant>,
) -> Result<Waited, Failure> {
    let left = deadline.map(|it| it.saturating_duration_since(Instant::now()));
    let waited = tokio::select! {
        biased;
        waited = call.engine.wait(call.caller, id, &WaitFor::Prompt, left) => waited,
        waited = call.engine.wait(call.caller, id, reason, left) => waited,
    };
    waited.map_err(|error| session::failure(call, id, error))
}
