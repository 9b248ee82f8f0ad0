//! What a call waits for before it answers.

use std::time::Duration;

use ostler_engine::{ExecutionInfo, SentInput, WaitEnd, WaitFor, WaitOutcome};
use ostler_journal::Pattern;
use ostler_model::{Cursor, ErrorCode};
use tokio::time::Instant;

use super::activity::{Activity, ActivityMeter};
use super::session;
use crate::progress::ProgressTarget;
use crate::reply::ToolInterrupt;
use crate::tool_call::ToolCall;
use crate::tools::params::{WAIT_LIMIT_MS, parse_pattern};
use crate::wait;
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// Silence after which a full-screen program counts as settled, in milliseconds.
const DRAWN_MS: u64 = 250;
/// Silence after which any program counts as settled, in milliseconds.
const QUIET_MS: u64 = 1_000;
/// Silence for `until` "idle", in milliseconds.
const IDLE_MS: u64 = 1_000;
/// The default wait for a named condition.
const NAMED_WAIT: Duration = Duration::from_secs(30);

pub(super) const UNTIL: Parameter = Parameter::optional(
    "until",
    ParameterKind::Choice(&["settled", "output", "prompt", "idle", "exit", "pattern"]),
    "",
);
pub(super) const PATTERN: Parameter =
    Parameter::optional("pattern", ParameterKind::Text, "Perl-style, on new lines");
pub(super) const WAIT_MS: Parameter = Parameter::optional(
    "wait_ms",
    ParameterKind::Integer(0, WAIT_LIMIT_MS),
    "At most",
);

/// The condition of the wait.
#[derive(Debug, Clone)]
pub(in crate::tools) enum SettleUntil {
    /// It asks for input, has drawn its screen, is silent, or has ended.
    Settled,
    /// A condition of the engine.
    Reason(WaitFor),
}

/// A wait: its condition and its longest duration.
#[derive(Debug, Clone)]
pub(in crate::tools) struct SettleWait {
    pub(in crate::tools) until: SettleUntil,
    pub(in crate::tools) timeout: Duration,
}

impl SettleWait {
    /// Reads `until`, `pattern` and `wait_ms`; output up to `after` is ignored. None where none of
    /// them is given.
    pub(super) fn parse(
        arguments: &mut Arguments,
        from: Option<Cursor>,
        default_timeout: Duration,
    ) -> Result<Option<Self>, ApiError> {
        let given = ["until", "pattern", "wait_ms"];
        if !given.into_iter().any(|name| arguments.is_given(name)) {
            return Ok(None);
        }
        let timeout = arguments.count("wait_ms").map(Duration::from_millis);
        let until = parse_until(arguments, from)?;
        let standard = match until {
            SettleUntil::Settled => default_timeout,
            SettleUntil::Reason(_) => NAMED_WAIT,
        };
        Ok(Some(Self {
            timeout: timeout.unwrap_or(standard),
            until,
        }))
    }
}

impl SettleWait {
    /// The same wait for the effect of this input.
    pub(super) fn after_input(mut self, input: &SentInput) -> Self {
        let from = Cursor {
            offset: input.offset,
            event: 0,
        };
        self.until = match self.until {
            SettleUntil::Reason(WaitFor::Pattern(pattern) | WaitFor::PatternAfter(pattern, _)) => {
                SettleUntil::Reason(WaitFor::PatternAfterInput(pattern, input.clone()))
            }
            SettleUntil::Reason(WaitFor::OutputAfter(_)) => {
                SettleUntil::Reason(WaitFor::OutputAfter(from))
            }
            until @ (SettleUntil::Settled | SettleUntil::Reason(_)) => until,
        };
        self
    }
}

fn parse_until(arguments: &mut Arguments, from: Option<Cursor>) -> Result<SettleUntil, ApiError> {
    let pattern = parse_pattern(arguments, "pattern")?;
    let word = arguments.text("until");
    let word = word.as_deref().unwrap_or(match pattern {
        Some(_) => "pattern",
        None => "settled",
    });
    let reason = match (word, pattern) {
        ("pattern", Some(pattern)) => pattern_reason(pattern, from),
        ("pattern", None) => {
            return Err(ApiError::value(
                "until 'pattern' needs parameter 'pattern', a Perl-style expression",
            ));
        }
        (word, Some(_)) => {
            return Err(ApiError::value(format!(
                "parameter 'pattern' does not go with until '{word}'; allowed: until 'pattern'"
            )));
        }
        ("output", None) => WaitFor::OutputAfter(from.unwrap_or_default()),
        ("prompt", None) => WaitFor::Prompt,
        ("idle", None) => WaitFor::Idle(Duration::from_millis(IDLE_MS)),
        ("exit", None) => WaitFor::Exit,
        _ => return Ok(SettleUntil::Settled),
    };
    Ok(SettleUntil::Reason(reason))
}

fn pattern_reason(pattern: Pattern, from: Option<Cursor>) -> WaitFor {
    match from {
        Some(from) => WaitFor::PatternAfter(pattern, from),
        None => WaitFor::Pattern(pattern),
    }
}

/// The outcome of a wait.
#[derive(Debug)]
pub(in crate::tools) struct SettleOutcome {
    pub(in crate::tools) waited: WaitOutcome,
    /// The program's activity, where it was silent to the end of the wait.
    pub(in crate::tools) activity: Option<Activity>,
}

impl From<WaitOutcome> for SettleOutcome {
    fn from(waited: WaitOutcome) -> Self {
        Self {
            waited,
            activity: None,
        }
    }
}

/// The outcome of the wait that follows a start. Where that failed, the start is answered all the
/// same: it runs or ran, so its id must be reported.
pub(in crate::tools) fn outcome_of_start(
    call: ToolCall<'_>,
    waited: Result<SettleOutcome, ToolInterrupt>,
    info: ExecutionInfo,
) -> Result<SettleOutcome, ToolInterrupt> {
    match waited {
        Err(ToolInterrupt::Failed(failure)) => {
            Ok(SettleOutcome::from(wait::failed_wait(call, info, &failure)))
        }
        waited => waited,
    }
}

/// Waits, no longer than the call may. With `after`, a program counts as settled only once it has
/// printed something after that position, or asks for input.
pub(in crate::tools) async fn wait_session(
    call: ToolCall<'_>,
    id: &str,
    wait: &SettleWait,
    after: Option<Cursor>,
) -> Result<SettleOutcome, ToolInterrupt> {
    match &wait.until {
        SettleUntil::Reason(reason) => {
            let waited = wait::wait(call, id, reason, Some(wait.timeout)).await;
            let outcome =
                waited.map_err(|interrupted| to_session_failure(call, id, interrupted))?;
            Ok(SettleOutcome::from(outcome))
        }
        SettleUntil::Settled => {
            let max_wait = call.context.max_wait();
            let timeout = max_wait.map_or(wait.timeout, |it| it.min(wait.timeout));
            let waiting = wait_settled(call, id, after, timeout);
            Ok(call
                .run_with_progress(ProgressTarget::Name(id), waiting)
                .await?)
        }
    }
}

/// Words the error for a session that is gone meanwhile.
fn to_session_failure(call: ToolCall<'_>, id: &str, interrupted: ToolInterrupt) -> ToolInterrupt {
    if let ToolInterrupt::Failed(failure) = &interrupted
        && failure.code == ErrorCode::ProcessNotFound
    {
        return session::session_failure(call, id, ostler_engine::Error::SessionNotFound).into();
    }
    interrupted
}

/// A prompt is the surest sign, and comes first; a full-screen program is silent when it has drawn;
/// a long silence is the only sign of others.
async fn wait_settled(
    call: ToolCall<'_>,
    id: &str,
    after: Option<Cursor>,
    timeout: Duration,
) -> Result<SettleOutcome, ApiError> {
    let mut meter = ActivityMeter::new(call, id);
    let deadline = Instant::now().checked_add(timeout);
    let drawn = WaitFor::Idle(Duration::from_millis(DRAWN_MS));
    let quiet = WaitFor::Idle(Duration::from_millis(QUIET_MS));
    if let Some(after) = after {
        let output = WaitFor::OutputAfter(after);
        let first_deadline = Instant::now() + Duration::from_millis(DRAWN_MS);
        let mut waited =
            wait_step(call, id, &output, deadline.map(|it| it.min(first_deadline))).await?;
        if waited.end == WaitEnd::TimedOut && deadline.is_none_or(|it| first_deadline < it) {
            meter.begin().await;
            waited = wait_step(call, id, &output, deadline).await?;
        }
        if waited.end == WaitEnd::TimedOut {
            let activity = meter.end().await;
            return Ok(SettleOutcome { waited, activity });
        }
        if waited.end != WaitEnd::Output {
            return Ok(waited.into());
        }
    }
    let waited = wait_step(call, id, &drawn, deadline).await?;
    if waited.end != WaitEnd::Idle {
        return Ok(waited.into());
    }
    let view = call.engine.screen(call.caller, id).await;
    if view
        .map_err(|error| session::session_failure(call, id, error))?
        .alternate
    {
        return Ok(waited.into());
    }
    meter.begin().await;
    let waited = wait_step(call, id, &quiet, deadline).await?;
    let activity = if waited.end == WaitEnd::Idle {
        meter.end().await
    } else {
        None
    };
    Ok(SettleOutcome { waited, activity })
}

/// Waits until the condition is met, the program asks for input, or has ended.
async fn wait_step(
    call: ToolCall<'_>,
    id: &str,
    reason: &WaitFor,
    deadline: Option<Instant>,
) -> Result<WaitOutcome, ApiError> {
    let remaining = deadline.map(|it| it.saturating_duration_since(Instant::now()));
    let waited = tokio::select! {
        biased;
        waited = call.engine.wait(call.caller, id, &WaitFor::Prompt, remaining) => waited,
        waited = call.engine.wait(call.caller, id, reason, remaining) => waited,
    };
    waited.map_err(|error| session::session_failure(call, id, error))
}
