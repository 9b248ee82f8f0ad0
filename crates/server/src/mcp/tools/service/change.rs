//! `service` stop, define, forget.

use ostler_engine::{ServiceStopped, StopRequest};
use ostler_model::Holder;
use serde_json::{Value, json};

use super::body::ServiceBody;
use super::request;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::Answer;
use crate::params::Arguments;

/// Stops one, and says which of its ports are free (E8).
pub(super) async fn stop(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let name = arguments.required_text("name");
    let directory = super::look::directory(call, &mut arguments);
    let request = StopRequest {
        force: arguments.flag("force"),
        grace: None,
        reason: arguments.text("reason"),
    };
    let stopped = call
        .engine
        .stop_service(call.caller, (&name, Some(directory.as_path())), request)
        .await?;
    if let Some(info) = &stopped.service.execution {
        call.told(info);
    }
    Ok(Reply::status(&told(&stopped)))
}

fn told(stopped: &ServiceStopped) -> Value {
    let mut body = json!(ServiceBody::from(&stopped.service));
    body["event"] = "service_stopped".into();
    body["released"] = json!(stopped.released);
    if !stopped.still_held.is_empty() {
        let holders = stopped.still_held.iter().map(holder);
        body["still_held"] = holders.collect();
    }
    if !stopped.dependents.is_empty() {
        body["stopped_before"] = json!(stopped.dependents);
    }
    let survivors = stopped.service.execution.as_ref();
    if let Some(info) = survivors.filter(|info| !info.survivors.is_empty()) {
        body["survivors"] = json!(info.survivors);
    }
    body
}

fn holder(holder: &Holder) -> Value {
    json!({
        "port": holder.address.port(),
        "pid": holder.pid,
        "process": holder.process,
        "command": holder.command,
        "id": holder.execution.map(|id| id.short()),
    })
}

/// Leaves an ended one out of lists.
pub(super) fn dismiss(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let name = arguments.required_text("name");
    let directory = super::look::directory(call, &mut arguments);
    let place = Some(directory.as_path());
    let dismissed = call.engine.dismiss_service(call.caller, &name, place)?;
    if let Some(info) = &dismissed.execution {
        call.told(info);
    }
    Ok(Reply::status(&ServiceBody::from(&dismissed)))
}

/// Keeps a definition.
pub(super) fn define(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let Some(request) = request::request(call, &mut arguments)? else {
        return Err(Failure::value("action 'define' needs parameter 'command'").into());
    };
    call.engine.define_service(call.caller, &request)?;
    let name = request.name.unwrap_or_default();
    let next = format!("service {{\"action\":\"up\",\"name\":\"{name}\"}} starts it");
    let body = json!({"name": name, "result": "defined; nothing was started", "next": next});
    Ok(Reply::status(&body))
}

/// Forgets one; what runs goes on.
pub(super) fn forget(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let name = arguments.required_text("name");
    call.engine.forget_service(call.caller, &name)?;
    let body = json!({"name": name, "result": "forgotten; what runs goes on"});
    Ok(Reply::status(&body))
}
