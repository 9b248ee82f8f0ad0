//! Conditions to wait for.

use std::time::Duration;

use ostler_engine::{ExecutionInfo, WaitFor};
use ostler_journal::Pattern;
use ostler_model::Cursor;

use ostler_interface::error::{ApiError, bad_pattern};
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The longest wait, in milliseconds: a day. The call itself waits no longer than its maximum.
pub(in crate::tools) const WAIT_LIMIT_MS: i64 = 86_400_000;
/// The default idle time, in milliseconds.
const IDLE_MS: u64 = 1_000;

pub(in crate::tools) const UNTIL: Parameter = Parameter::optional(
    "until",
    ParameterKind::Choice(&["exit", "pattern", "prompt", "idle", "ready"]),
    "What to wait for, as in exec",
);
pub(in crate::tools) const PATTERN: Parameter =
    Parameter::optional("pattern", ParameterKind::Text, "Perl-style regex");
pub(in crate::tools) const IDLE: Parameter = Parameter::optional(
    "idle_ms",
    ParameterKind::Integer(1, WAIT_LIMIT_MS),
    "Silence; default 1000",
);

/// Reads `until`, `pattern` and `idle_ms`; a pattern or an idle time alone implies its condition.
/// Lines before `from` are ignored.
pub(in crate::tools) fn parse_wait_for(
    arguments: &mut Arguments,
    from: Option<Cursor>,
) -> Result<WaitFor, ApiError> {
    let pattern = parse_pattern(arguments, "pattern")?;
    let idle = arguments.count("idle_ms");
    let word = arguments.text("until");
    let word = word.as_deref().unwrap_or(match (&pattern, idle) {
        (Some(_), _) => "pattern",
        (None, Some(_)) => "idle",
        (None, None) => "exit",
    });
    if pattern.is_some() && word != "pattern" {
        return Err(mismatch("pattern", word));
    }
    if idle.is_some() && word != "idle" {
        return Err(mismatch("idle_ms", word));
    }
    Ok(match word {
        "pattern" => match (pattern, from) {
            (Some(pattern), None) => WaitFor::Pattern(pattern),
            (Some(pattern), Some(from)) => WaitFor::PatternAfter(pattern, from),
            (None, _) => {
                return Err(ApiError::value(
                    "until 'pattern' needs parameter 'pattern', a Perl-style expression",
                ));
            }
        },
        "prompt" => WaitFor::Prompt,
        "ready" => WaitFor::Ready,
        "idle" => WaitFor::Idle(Duration::from_millis(idle.unwrap_or(IDLE_MS))),
        _ => WaitFor::Exit,
    })
}

/// Refuses to wait for the readiness of an execution that is not a service.
pub(in crate::tools) fn check_can_be_ready(
    info: &ExecutionInfo,
    until: &WaitFor,
) -> Result<(), ApiError> {
    if !matches!(until, WaitFor::Ready) || info.spec.lifetime.plan().is_some() {
        return Ok(());
    }
    let message = format!(
        "until 'ready' is for services, and {} is none; allowed: exit, pattern, prompt, idle",
        info.id.short()
    );
    let hint = "start a server with service, or with exec and until \"ready\"";
    Err(ApiError::value(message).with_hint(hint))
}

/// Parses a parameter that is a regular expression.
pub(in crate::tools) fn parse_pattern(
    arguments: &mut Arguments,
    name: &'static str,
) -> Result<Option<Pattern>, ApiError> {
    let Some(given) = arguments.text(name) else {
        return Ok(None);
    };
    let pattern = Pattern::new(&given).map_err(|error| bad_pattern(name, &given, &error))?;
    Ok(Some(pattern))
}

/// The wait time of a call.
pub(in crate::tools) fn parse_wait_ms(arguments: &Arguments) -> Option<Duration> {
    arguments.count("wait_ms").map(Duration::from_millis)
}

fn mismatch(name: &str, until: &str) -> ApiError {
    let right = if name == "pattern" { "pattern" } else { "idle" };
    ApiError::value(format!(
        "parameter '{name}' does not go with until '{until}'; allowed: until '{right}'"
    ))
}
