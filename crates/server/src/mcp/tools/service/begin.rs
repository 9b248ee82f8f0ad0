//! `service` start, ensure, up, restart: each waits until what it began is ready.

use std::time::Duration;

use futures_util::future::join_all;
use ostler_engine::{Ensured, Info, ServiceInfo, ServiceRequest, WaitFor};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::body::ServiceBody;
use super::launch::{Launched, attend, launch, patiently};
use super::outcome::{Answered, Outcome, failed_to_start};
use super::request;
use crate::error::Failure;
use crate::mcp::consent;
use crate::mcp::context::Call;
use crate::mcp::reply::{Interrupted, Reply};
use crate::mcp::tools::registry::Answer;
use crate::mcp::waiting::{OnPrompt, Options};
use crate::params::Arguments;

/// Starts one; by its name alone, the one that is defined.
pub(super) async fn start(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let at_most = at_most(&arguments);
    let Some(request) = request::request(call, &mut arguments)? else {
        return one_of(call, arguments, at_most).await;
    };
    match launch(call, request, options(at_most)).await {
        Ok(launched) => Ok(answered(call, launched, None).await.reply()),
        Err(interrupted) => failed_to_start(interrupted),
    }
}

/// Reuses one that lives and is well, else starts it.
pub(super) async fn ensure(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let at_most = at_most(&arguments);
    let Some(request) = request::request(call, &mut arguments)? else {
        return one_of(call, arguments, at_most).await;
    };
    match ensured(call, request, at_most).await {
        Ok(answered) => Ok(answered.reply()),
        Err(interrupted) => failed_to_start(interrupted),
    }
}

async fn ensured(
    call: Call<'_>,
    request: ServiceRequest,
    at_most: Option<Duration>,
) -> Result<Answered, Interrupted> {
    let ensured = patiently(call, Box::pin(consent::ensure(call, request))).await?;
    told(call, &ensured, at_most).await
}

/// Starts what is defined for a directory, with what it depends on, in order.
pub(super) async fn up(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let at_most = at_most(&arguments);
    let names: Vec<String> = arguments.text("name").into_iter().collect();
    several(call, &mut arguments, (&names, at_most)).await
}

/// The one that is defined under a name.
async fn one_of(call: Call<'_>, mut arguments: Arguments, at_most: Option<Duration>) -> Answer {
    let names: Vec<String> = arguments.text("name").into_iter().collect();
    several(call, &mut arguments, (&names, at_most)).await
}

async fn several(
    call: Call<'_>,
    arguments: &mut Arguments,
    (names, at_most): (&[String], Option<Duration>),
) -> Answer {
    let begun = Instant::now();
    let base = request::base(call, arguments);
    let upped = match patiently(call, Box::pin(consent::up(call, (names, base)))).await {
        Ok(upped) => upped,
        Err(interrupted) => return failed_to_start(interrupted),
    };
    let left = at_most.map(|at_most| at_most.saturating_sub(begun.elapsed()));
    let waits = upped.iter().map(|one| told(call, one, left));
    let mut answers = Vec::with_capacity(upped.len());
    for answered in join_all(waits).await {
        answers.push(answered?);
    }
    Ok(match answers.len() {
        1 => answers.remove(0).reply(),
        _ => together(answers),
    })
}

/// Several services, each in its own words.
fn together(answers: Vec<Answered>) -> Reply {
    let texts: Vec<&str> = answers.iter().map(|it| it.text.as_str()).collect();
    let text = texts.join("\n\n");
    let fields: Vec<Value> = answers.into_iter().map(|it| it.fields).collect();
    Reply {
        blocks: vec![text],
        structured: Some(json!({"services": fields})),
        ..Reply::default()
    }
}

/// Begins the next attempt of one.
pub(super) async fn restart(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let at_most = at_most(&arguments);
    let name = arguments.required_text("name");
    let directory = super::look::directory(call, &mut arguments);
    let again = call
        .engine
        .restart_service(call.caller, &name, Some(directory.as_path()));
    let service = again.await?;
    let Some(info) = &service.execution else {
        return Ok(Reply::status(&ServiceBody::from(&service)));
    };
    let launched = waited(call, (info, &WaitFor::Ready), at_most).await?;
    Ok(answered(call, launched, None).await.reply())
}

/// Waits for one of several, and tells of it.
async fn told(
    call: Call<'_>,
    ensured: &Ensured,
    at_most: Option<Duration>,
) -> Result<Answered, Interrupted> {
    let ServiceInfo { execution, .. } = &ensured.service;
    let Some(info) = execution else {
        let message = format!("{}: {}", ensured.service.name, ensured.note);
        return Err(Failure::new(ostler_model::ErrorCode::Service, message).into());
    };
    let until = if ensured.completes {
        WaitFor::Exit
    } else {
        WaitFor::Ready
    };
    let launched = waited(call, (info, &until), at_most).await?;
    Ok(answered(call, launched, Some(ensured)).await)
}

async fn waited(
    call: Call<'_>,
    (info, until): (&Info, &WaitFor),
    at_most: Option<Duration>,
) -> Result<Launched, Interrupted> {
    attend(call, (&info.id.short(), until), options(at_most)).await
}

async fn answered(call: Call<'_>, launched: Launched, ensured: Option<&Ensured>) -> Answered {
    let outcome = Outcome {
        launched,
        note: ensured
            .map(|it| it.note.clone())
            .filter(|it| !it.is_empty()),
        reused: ensured.map(|it| it.reused),
        completes: ensured.is_some_and(|it| it.completes),
    };
    outcome.answered(call).await
}

fn at_most(arguments: &Arguments) -> Option<Duration> {
    arguments.count("wait_ms").map(Duration::from_millis)
}

fn options(at_most: Option<Duration>) -> Options {
    Options {
        at_most,
        may_be_task: false,
        on_prompt: OnPrompt::Ignore,
    }
}
