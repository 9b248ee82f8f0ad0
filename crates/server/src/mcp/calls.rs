//! `tools/call`: from the request to a tool and back, whatever the answer turns out to be.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use ostler_engine::Begun;
use ostler_model::ErrorCode;
use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::context::{Call, Client};
use super::desk::Desk;
use super::interrupted::{self, Cause, Twice};
use super::leases::Leases;
use super::link::Link;
use super::reply::{Interrupted, Reply};
use super::stdio::Attempt;
use super::tools::Definition;
use super::{convert, elicit, tasks, tools};
use crate::error::Failure;

/// Who asks, and where the answer goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) desk: &'a Desk,
    pub(super) client: &'a Client,
    /// On a stream: what answers name is given out as they are sent.
    pub(super) leases: Option<&'a Leases>,
    pub(super) context: &'a RequestContext<RoleServer>,
    /// Runs what a call leaves to be done.
    pub(super) errands: &'a TaskTracker,
}

/// Answers one call.
pub(super) async fn answer(
    asked: Asked<'_>,
    request: CallToolRequestParams,
) -> Result<CallToolResponse, ErrorData> {
    let Asked {
        desk,
        client,
        context,
        ..
    } = asked;
    let Some(tool) = client.front.tools.named(&request.name) else {
        return Err(unknown_tool(client, &request.name));
    };
    let link = link(asked, &request)?;
    let call = Call {
        engine: desk.engine(),
        caller: &client.caller,
        front: &client.front,
        desk,
        link: &link,
    };
    let given = request.arguments.unwrap_or_default();
    if let Err(failure) = once(asked, tool, &given) {
        return Ok(told(asked, Reply::from(failure)));
    }
    // Only a modern call can be answered with something else than its result.
    let kept = link.is_modern().then(|| given.clone());
    let news = desk.news();
    news.enter(&client.caller).await;
    let _attending = news.attend(&client.caller, &given);
    let answer = tokio::select! {
        biased;
        () = context.ct.cancelled() => return Err(cancelled()),
        answer = carried_out(tool, call, given) => answer,
    };
    let response = match answer {
        Ok(reply) => told(asked, reply.queued(link.wait_for_place())),
        Err(Interrupted::Failed(failure)) => told(asked, Reply::from(failure)),
        Err(Interrupted::Task(tasked)) => {
            let origin = (tool, kept.unwrap_or_default());
            tasks::create(call, origin, *tasked).await.into()
        }
        Err(Interrupted::Asks(asking)) => {
            let about = elicit::about(&client.caller, tool.name, &kept.unwrap_or_default());
            let required = elicit::required(call, &asking, &about);
            required
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?
                .into()
        }
    };
    give_out(asked, link.into_named()).await;
    Ok(response)
}

/// A call that types, signals or removes is carried out at most once: where an earlier daemon
/// may have done it, nobody knows whether it did.
fn once(asked: Asked<'_>, tool: &Definition, given: &JsonObject) -> Result<(), Failure> {
    let Some(attempt) = asked.context.extensions.get::<Attempt>() else {
        return Ok(());
    };
    if interrupted::twice(tool, given) == Twice::Same {
        return Ok(());
    }
    if attempt.was_dispatched() {
        let call = (Some(tool), given);
        let engine = asked.desk.engine();
        let cause = Cause::Restart;
        return Err(interrupted::failure(engine, asked.client, cause, call, &[]));
    }
    attempt.dispatch().map_err(|error| {
        let message = format!("the connection's log cannot be written: {error}");
        Failure::new(ErrorCode::Internal, message)
    })
}

/// What this request is about: a call, or a call repeated with a person's answer.
fn link<'a>(asked: Asked<'a>, request: &CallToolRequestParams) -> Result<Link<'a>, ErrorData> {
    let at = (asked.context, asked.errands);
    let Some(state) = &request.request_state else {
        return Ok(Link::of(at));
    };
    let none = JsonObject::new();
    let arguments = request.arguments.as_ref().unwrap_or(&none);
    let about = elicit::about(&asked.client.caller, &request.name, arguments);
    let ticket = asked.desk.seals().open(&about, state).map_err(|error| {
        let message = format!("requestState is not taken: {error}; call without it");
        ErrorData::invalid_params(message, None)
    })?;
    let replies = request.input_responses.as_ref();
    let reply = replies.and_then(|replies| replies.get(&ticket.interaction));
    let reply = reply.map_or(elicit::Reply::Nothing, |reply| {
        elicit::Reply::parse(reply.clone())
    });
    Ok(Link::resuming(at, ticket, reply))
}

/// Calls the tool. A bug in it is an answer, too: a client never waits for nothing.
async fn carried_out(
    tool: &'static Definition,
    call: Call<'_>,
    given: JsonObject,
) -> tools::Answer {
    // What it leaves behind is shared only behind locks that do not mind.
    let calling = AssertUnwindSafe(tools::call(tool, call, given)).catch_unwind();
    calling.await.unwrap_or_else(|_| {
        let message = format!("{} broke off; that is a bug, and the log has it", tool.name);
        Err(Failure::new(ErrorCode::Internal, message).into())
    })
}

fn told(asked: Asked<'_>, reply: Reply) -> CallToolResponse {
    let news = asked.desk.news().line(&asked.client.caller);
    convert::result(reply, news, asked.desk.options().structured).into()
}

/// What the answer names is given out with it: on a stream when it is sent, over HTTP now,
/// unless the request was cancelled by then.
async fn give_out(asked: Asked<'_>, named: Vec<Begun>) {
    let Asked {
        client, context, ..
    } = asked;
    if named.is_empty() || context.ct.is_cancelled() {
        return;
    }
    match asked.leases {
        Some(leases) => {
            leases.add(&context.id, named);
            // Cancelled just now: nobody will look at the lease again.
            if context.ct.is_cancelled() {
                leases.revoke(&context.id);
            }
        }
        None => {
            for begun in named {
                let id = begun.id();
                begun.release();
                asked.desk.news().given_out(&client.caller, id).await;
            }
        }
    }
}

/// What is wrong with the params of a `tools/call`.
pub(super) fn malformed(params: Option<&Value>) -> String {
    let Some(Value::Object(params)) = params else {
        return "params must be an object with 'name', a string, and 'arguments', an object"
            .to_owned();
    };
    let is_wrong = |name: &str, is_right: fn(&Value) -> bool| {
        params.get(name).is_some_and(|value| !is_right(value))
    };
    if !params.contains_key("name") {
        "params.name is missing; it must be a string, the tool's name".to_owned()
    } else if is_wrong("name", Value::is_string) {
        "params.name must be a string, the tool's name".to_owned()
    } else if is_wrong("arguments", Value::is_object) {
        "params.arguments must be an object".to_owned()
    } else if is_wrong("inputResponses", Value::is_object) {
        "params.inputResponses must be an object".to_owned()
    } else if is_wrong("requestState", Value::is_string) {
        "params.requestState must be a string".to_owned()
    } else {
        "params._meta is malformed: it must be an object".to_owned()
    }
}

fn unknown_tool(client: &Client, name: &str) -> ErrorData {
    let known: Vec<&str> = client.front.tools.tools().map(|tool| tool.name).collect();
    let known = known.join(", ");
    let message: Cow<'static, str> = format!("unknown tool '{name}'; allowed: {known}").into();
    ErrorData::invalid_params(message, None)
}

/// What nobody will read: the library drops answers to cancelled requests.
fn cancelled() -> ErrorData {
    ErrorData::internal_error("the request was cancelled", None)
}
