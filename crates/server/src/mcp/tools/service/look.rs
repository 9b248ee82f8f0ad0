//! `service` list, status, logs, why: look, and change nothing.

use std::time::Duration;

use ostler_engine::{Info, ServiceInfo, WaitEnd, WaitFor, Waited};
use ostler_model::ErrorCode;
use serde_json::json;

use super::body::ServiceBody;
use super::launch::attend;
use super::outcome::Outcome;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::core::select::Selection;
use crate::mcp::tools::core::shown;
use crate::mcp::tools::listing::{self, WHOLE_ANSWER};
use crate::mcp::tools::registry::Answer;
use crate::mcp::waiting::Options;
use crate::params::Arguments;
use crate::render::clean;
use crate::window::service_position;

/// The services the caller sees, the living and the pending first; a window of them.
pub(super) fn list(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let directory = directory(call, &mut arguments);
    let place = Some(directory.as_path()).filter(|_| !arguments.flag("all_workspaces"));
    let found = call.engine.services(call.caller, place)?;
    let living = found.iter().filter(|it| it.is_living()).count();
    let mut body = json!({"total": found.len(), "living": living});
    let elsewhere = call.engine.services_elsewhere(call.caller, place);
    if elsewhere > 0 {
        body["elsewhere"] =
            format!("{elsewhere} more live in other workspaces: all_workspaces lists them").into();
    }
    let rest = listing::rest(&found, service_position, &mut arguments)?;
    let all = rest.len();
    let entries = rest.into_iter().map(|(at, service)| {
        let entry = json!(ServiceBody::from(service));
        (at, (service.execution.as_ref(), entry))
    });
    let page = listing::window(call, WHOLE_ANSWER, entries, all);
    listing::put(page, &mut body, "services");
    Ok(Reply::status(&body))
}

/// Where one stands; with `wait_ms`, once it is ready.
pub(super) async fn status(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let service = named(call, &mut arguments)?;
    let wait = arguments.count("wait_ms").map(Duration::from_millis);
    let (Some(info), Some(wait)) = (&service.execution, wait) else {
        if let Some(info) = &service.execution {
            call.told(info);
        }
        return Ok(Reply::status(&ServiceBody::from(&service)));
    };
    let asked = (&*info.id.short(), &WaitFor::Ready);
    let launched = attend(call, asked, Options::from(Some(wait))).await?;
    let outcome = Outcome {
        launched,
        note: None,
        reused: None,
        completes: false,
    };
    Ok(outcome.answered(call).await.reply())
}

/// What one printed.
pub(super) async fn logs(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let service = named(call, &mut arguments)?;
    let info = execution(&service)?;
    let selection = Selection::lines(&mut arguments)?;
    let seen = Waited {
        cursor: info.cursor(),
        why: WaitEnd::Nothing,
        info: info.clone(),
    };
    Ok(shown::shown(call, &seen, &selection).await?.reply())
}

/// Why one is where it is.
pub(super) async fn why(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let name = arguments.required_text("name");
    let directory = directory(call, &mut arguments);
    let why = call
        .engine
        .why(call.caller, &name, Some(directory.as_path()))
        .await?;
    let mut lines = vec![format!("{}: {}. {}", why.name, why.status, why.because)];
    lines.extend(why.evidence.iter().map(|it| format!("- {it}")));
    lines.extend(why.hints.iter().map(|it| format!("hint: {it}")));
    let lines: Vec<_> = lines.iter().map(|line| clean(line)).collect();
    let text = lines.join("\n");
    Ok(Reply {
        blocks: vec![text],
        structured: Some(json!({
            "name": why.name,
            "status": why.status,
            "because": why.because,
            "evidence": why.evidence,
            "hints": why.hints,
        })),
        ..Reply::default()
    })
}

fn named(call: Call<'_>, arguments: &mut Arguments) -> Result<ServiceInfo, Failure> {
    let name = arguments.required_text("name");
    let directory = directory(call, arguments);
    let found = call
        .engine
        .service(call.caller, &name, Some(directory.as_path()));
    Ok(found?)
}

fn execution(service: &ServiceInfo) -> Result<&Info, Failure> {
    service.execution.as_ref().ok_or_else(|| {
        let message = format!("service '{}' never ran: it printed nothing", service.name);
        Failure::new(ErrorCode::Service, message)
    })
}

pub(super) fn directory(call: Call<'_>, arguments: &mut Arguments) -> ostler_model::Text {
    call.directory(&arguments.text("cwd").unwrap_or_default())
}
