//! What starting an execution takes, whichever verb starts it.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use ostler_model::{ErrorCode, ExecutionId, Text};
use ostler_server::wire::{InfoBody, QueuedStartBody, StartBody};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::approve;
use crate::client::{Body, Client};
use crate::error::{CommandError, Outcome};
use crate::output::{Out, print_json};
use crate::setup::Setup;

/// How often it is looked whether a start that is not answered waits for a place, in
/// milliseconds.
const QUEUE_LOOK_MS: u64 = 500;
/// Executions named to a person who waits for their places.
const HOLDERS_TOLD: usize = 5;
/// What a shell shows when a program was not found.
const EXIT_NOT_FOUND: u8 = 127;
/// What a shell shows when a program could not be executed.
const EXIT_NOT_EXECUTABLE: u8 = 126;

/// What every verb takes that starts something.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Working directory; here unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Set a variable, or pass ours on where only its name is given
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<OsString>,
    /// Start with the few variables agents' commands start with, and those of --env, instead
    /// of all of yours
    #[arg(long)]
    pub(crate) clean_env: bool,
    /// A label to find it by; repeatable
    #[arg(short, long, value_name = "LABEL")]
    pub(crate) label: Vec<String>,
    /// What to call it, for people
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) description: String,
}

/// Whether it gets our whole environment: what a person starts does, unless the flag or a
/// setting says otherwise.
pub(crate) fn inherits(setup: &Setup, clean_env: bool) -> bool {
    !clean_env && setup.config.inherits_at_prompt()
}

/// Starts it.
///
/// # Errors
/// As the daemon answers; what cannot run exits as it would in a shell.
pub(crate) async fn start(client: &Client, body: &StartBody) -> Result<InfoBody, CommandError> {
    let error = match post(client, body).await {
        Err(error) if error.approval().is_some() => error,
        answer => return answer.map_err(as_a_shell),
    };
    let id = error.approval().unwrap_or_default().to_owned();
    let why = error.told().unwrap_or_default();
    let what = (&*body.command.display(), why);
    if approve::at_terminal(client, &id, what).await? != Some(true) {
        return Err(error);
    }
    let mut body = body.clone();
    body.approval = Some(id);
    post(client, &body).await.map_err(as_a_shell)
}

/// The body has an id, so the start can be repeated.
async fn post(client: &Client, body: &StartBody) -> Result<InfoBody, CommandError> {
    let sent = Body::json(body)?;
    let starting = client.call_repeatable(Method::POST, "/api/v1/executions", sent);
    in_turn(client, body.id, starting).await
}

/// Carries a start out, and says once where it waits for a place.
///
/// # Errors
/// As the start.
pub(crate) async fn in_turn(
    client: &Client,
    id: Option<ExecutionId>,
    starting: impl Future<Output = Result<InfoBody, CommandError>>,
) -> Result<InfoBody, CommandError> {
    let Some(id) = id else {
        return starting.await;
    };
    let info = tokio::select! {
        biased;
        started = starting => started?,
        never = tell_queue(client, id) => match never {},
    };
    if let Some(queued) = &info.queued {
        crate::tell(&format!("{}: {queued}", info.id));
    }
    Ok(info)
}

/// Says that the start with this id waits for a place, once it does.
async fn tell_queue(client: &Client, id: ExecutionId) -> Infallible {
    let path = format!("/api/v1/starts/{id}");
    let look = Duration::from_millis(QUEUE_LOOK_MS);
    let mut looks = interval_at(Instant::now() + look, look);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let asked = client.call::<QueuedStartBody>(Method::GET, &path, Body::None);
        if let Ok(queued) = asked.await {
            crate::tell(&in_words(&queued));
            return std::future::pending().await;
        }
    }
}

fn in_words(queued: &QueuedStartBody) -> String {
    let QueuedStartBody {
        ahead,
        running,
        limit,
        holders,
    } = queued;
    let named: Vec<String> = holders
        .iter()
        .take(HOLDERS_TOLD)
        .map(|it| format!("{} ({})", it.id, it.command))
        .collect();
    let more = match running.saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let before = match ahead {
        0 => String::new(),
        1 => ", one start before it".to_owned(),
        many => format!(", {many} starts before it"),
    };
    format!(
        "waiting for one of {limit} places{before}; they are held by {}{more}",
        named.join(", ")
    )
}

/// A program that cannot run exits as it would in a shell.
pub(crate) fn as_a_shell(error: CommandError) -> CommandError {
    let born = error.to_string().contains("could not start");
    match error.code() {
        Some(ErrorCode::CommandExecution) if !born => error.with_exit(EXIT_NOT_FOUND),
        Some(ErrorCode::CommandExecution | ErrorCode::Permission) => {
            error.with_exit(EXIT_NOT_EXECUTABLE)
        }
        Some(_) | None => error,
    }
}

/// Tells what was started.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn told(info: &InfoBody, json: bool) -> Outcome {
    if json {
        print_json(info)?;
    } else {
        let mut out = Out::new();
        out.line(&info.id)?;
        out.flush()?;
    }
    Ok(0)
}

/// The working directory asked for, or ours.
///
/// # Errors
/// When ours is gone.
pub(crate) fn directory(given: Option<PathBuf>) -> Result<Text, CommandError> {
    let here = std::env::current_dir().map_err(|error| {
        CommandError::new(
            ErrorCode::Environment,
            format!("the working directory is gone: {error}"),
        )
    })?;
    Ok(Text::from(
        given.map_or(here.clone(), |path| here.join(path)),
    ))
}

/// Variables as given with --env.
///
/// # Errors
/// When a name is empty, or no variable of ours.
pub(crate) fn variables(
    setup: &Setup,
    given: Vec<OsString>,
) -> Result<Vec<(Text, Text)>, CommandError> {
    given
        .into_iter()
        .map(|pair| variable(setup, pair))
        .collect()
}

fn variable(setup: &Setup, pair: OsString) -> Result<(Text, Text), CommandError> {
    let bytes = Text::from(pair).into_bytes();
    let equals = bytes.iter().position(|&byte| byte == b'=');
    let (name, value) = match equals {
        Some(0) => return Err(CommandError::value("--env: the name is empty")),
        Some(at) => (&bytes[..at], Some(Text::from(&bytes[at + 1..]))),
        None => (&bytes[..], None),
    };
    let ours = || {
        let name = std::str::from_utf8(name).ok()?;
        setup
            .env
            .exact(name)
            .map(|value| Text::from(value.to_owned()))
    };
    let value = value.or_else(ours).ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        CommandError::value(format!("--env {name}: there is no such variable here"))
            .with_hint("write --env NAME=VALUE")
    })?;
    Ok((Text::from(name), value))
}
