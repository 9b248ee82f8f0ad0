//! `service` list, status, logs, why: read-only actions.

use std::time::Duration;

use ostler_engine::{ExecutionInfo, ServiceInfo, WaitEnd, WaitFor, WaitOutcome};
use ostler_model::ErrorCode;
use ostler_render::clean;
use serde_json::json;

use super::launch_wait::wait_ready;
use super::start_result::ServiceOutcome;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::execution::ServiceToolBody;
use crate::tools::execution::execution_reply;
use crate::tools::listing::{self, WHOLE_ANSWER};
use crate::tools::params::output_range::OutputSelection;
use crate::tools::registry::ToolResult;
use crate::wait::WaitOptions;
use ostler_interface::cursor_argument::{CURSOR_PARAMETER, check_cursor};
use ostler_interface::error::ApiError;
use ostler_interface::pagination::service_position;
use ostler_interface::params::Arguments;

/// A page of the services the caller sees, running and pending ones first.
pub(super) fn list_services(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let directory = parse_directory(call, &mut arguments);
    let workspace = Some(directory.as_path()).filter(|_| !arguments.flag("all_workspaces"));
    let services = call.engine.services(call.caller, workspace)?;
    let living_count = services.iter().filter(|it| it.is_living()).count();
    let mut body = json!({"total": services.len(), "living": living_count});
    let elsewhere = call.engine.services_elsewhere(call.caller, workspace);
    if elsewhere > 0 {
        body["elsewhere"] =
            format!("{elsewhere} more live in other workspaces: all_workspaces lists them").into();
    }
    let remaining = listing::rest_after_cursor(&services, service_position, &mut arguments)?;
    let all = remaining.len();
    let entries = remaining.into_iter().map(|(at, service)| {
        let entry = json!(ServiceToolBody::from(service));
        (at, (service.execution.as_ref(), entry))
    });
    let page = listing::fill_page(call, WHOLE_ANSWER, entries, all);
    listing::put_page(page, &mut body, "services");
    Ok(ToolReply::status(&body))
}

/// The state of one; with `wait_ms`, once it is ready.
pub(super) async fn service_status(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let service = find_service(call, &mut arguments)?;
    let wait = arguments.count("wait_ms").map(Duration::from_millis);
    let (Some(info), Some(wait)) = (&service.execution, wait) else {
        if let Some(info) = &service.execution {
            call.mark_notified(info);
        }
        return Ok(ToolReply::status(&ServiceToolBody::from(&service)));
    };
    let (id, options) = (info.id.short(), WaitOptions::from(Some(wait)));
    let launch_outcome = wait_ready(call, &id, &WaitFor::Ready, options).await?;
    let outcome = ServiceOutcome {
        launch: launch_outcome,
        note: None,
        reused: None,
        completes: false,
    };
    Ok(outcome.into_reply(call).await.into_tool_reply())
}

/// The output of one.
pub(super) async fn service_logs(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let service = find_service(call, &mut arguments)?;
    let info = require_execution(&service)?;
    let selection = OutputSelection::parse_lines(&mut arguments)?;
    check_cursor(info, CURSOR_PARAMETER, selection.query.from)?;
    let current = WaitOutcome {
        cursor: info.cursor(),
        end: WaitEnd::Nothing,
        info: info.clone(),
    };
    Ok(execution_reply::execution_reply(call, &current, &selection)
        .await?
        .into_reply())
}

/// Diagnoses the state of one.
pub(super) async fn explain(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let name = arguments.required_text("name");
    let directory = parse_directory(call, &mut arguments);
    let why = call
        .engine
        .diagnose_service(call.caller, &name, Some(directory.as_path()))
        .await?;
    let mut lines = vec![format!("{}: {}. {}", why.name, why.status, why.cause)];
    lines.extend(why.evidence.iter().map(|it| format!("- {it}")));
    lines.extend(why.hints.iter().map(|it| format!("hint: {it}")));
    let lines: Vec<_> = lines.iter().map(|line| clean(line)).collect();
    let text = lines.join("\n");
    Ok(ToolReply {
        blocks: vec![text],
        structured: Some(json!({
            "name": why.name,
            "status": why.status,
            "because": why.cause,
            "evidence": why.evidence,
            "hints": why.hints,
        })),
        ..ToolReply::default()
    })
}

fn find_service(call: ToolCall<'_>, arguments: &mut Arguments) -> Result<ServiceInfo, ApiError> {
    let name = arguments.required_text("name");
    let directory = parse_directory(call, arguments);
    let result = call
        .engine
        .service(call.caller, &name, Some(directory.as_path()));
    Ok(result?)
}

fn require_execution(service: &ServiceInfo) -> Result<&ExecutionInfo, ApiError> {
    service.execution.as_ref().ok_or_else(|| {
        let message = format!("service '{}' never ran: it printed nothing", service.name);
        ApiError::new(ErrorCode::Service, message)
    })
}

pub(super) fn parse_directory(
    call: ToolCall<'_>,
    arguments: &mut Arguments,
) -> ostler_model::ByteString {
    call.resolve_directory(&arguments.text("cwd").unwrap_or_default())
}
