//! `service` stop, define, forget.

use ostler_engine::{ServiceStopped, StopRequest};
use ostler_model::PortHolder;
use serde_json::{Value, json};

use super::request;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::execution::ServiceToolBody;
use crate::tools::registry::ToolResult;
use ostler_interface::error::ApiError;
use ostler_interface::params::Arguments;

/// Stops one, and reports which of its ports are free.
pub(super) async fn stop_service(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let name = arguments.required_text("name");
    let directory = super::query::parse_directory(call, &mut arguments);
    let request = StopRequest {
        force: arguments.flag("force"),
        grace: None,
        reason: arguments.text("reason"),
    };
    let stopped = call
        .engine
        .stop_service(call.caller, &name, Some(directory.as_path()), request)
        .await?;
    if let Some(info) = &stopped.service.execution {
        call.mark_notified(info);
    }
    Ok(ToolReply::status(&stopped_body(&stopped)))
}

fn stopped_body(stopped: &ServiceStopped) -> Value {
    let mut body = json!(ServiceToolBody::from(&stopped.service));
    body["event"] = "service_stopped".into();
    body["released"] = json!(stopped.released);
    if !stopped.still_held.is_empty() {
        let holders = stopped.still_held.iter().map(holder_body);
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

fn holder_body(holder: &PortHolder) -> Value {
    json!({
        "port": holder.address.port(),
        "pid": holder.pid,
        "process": holder.process,
        "command": holder.command,
        "id": holder.execution.map(|id| id.short()),
    })
}

/// Hides an ended one from lists.
pub(super) fn dismiss_service(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let name = arguments.required_text("name");
    let directory = super::query::parse_directory(call, &mut arguments);
    let directory_path = Some(directory.as_path());
    let dismissed = call
        .engine
        .dismiss_service(call.caller, &name, directory_path)?;
    if let Some(info) = &dismissed.execution {
        call.mark_notified(info);
    }
    Ok(ToolReply::status(&ServiceToolBody::from(&dismissed)))
}

/// Stores a definition.
pub(super) fn define_service(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let Some(request) = request::parse_request(call, &mut arguments)? else {
        return Err(ApiError::value("action 'define' needs parameter 'command'").into());
    };
    call.engine.define_service(call.caller, &request)?;
    let name = request.name.unwrap_or_default();
    let next = format!("service {{\"action\":\"up\",\"name\":\"{name}\"}} starts it");
    let body = json!({"name": name, "result": "defined; nothing was started", "next": next});
    Ok(ToolReply::status(&body))
}

/// Deletes a definition; what runs continues.
pub(super) fn forget_service(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let name = arguments.required_text("name");
    call.engine.forget_service(call.caller, &name)?;
    let body = json!({"name": name, "result": "forgotten; what runs goes on"});
    Ok(ToolReply::status(&body))
}
