//! Commands that are services although nobody said so.

use std::time::Duration;

use ostler_engine::detection::DetectedService;
use ostler_engine::{
    AutoServices, ServiceRequest, StartRequest, StdinRequest, WaitEnd, WaitOutcome,
};
use serde_json::{Map, Value};

use super::launch_wait::ServiceLaunch;
use super::start_result::ServiceOutcome;
use crate::mcp::context::ToolCall;
use crate::mcp::reply::ToolReply;
use ostler_render::clean;

/// Why a command runs as a service.
#[derive(Debug, Clone)]
pub(in crate::mcp::tools) enum ServiceReason {
    /// The caller said so.
    Requested,
    /// The table knows it.
    Recognised {
        /// As what.
        detected: Box<DetectedService>,
        /// What makes it a plain command, for the answer.
        opt_out: &'static str,
        /// The time limit it was given.
        timeout: Option<Duration>,
    },
}

/// How a command of which nobody said that it is a service runs as one: the table knows it,
/// and no input says that its end is what it is run for. A time limit does not: many give one
/// out of habit, and there it bounds the wait until it is ready. None where services are not looked for, and where this request goes on with what was none.
pub(in crate::mcp::tools) fn detect_service(
    call: ToolCall<'_>,
    request: &StartRequest,
    opt_out: &'static str,
) -> Option<ServiceReason> {
    if request.stdin != StdinRequest::Default
        || call.engine.settings().services.automatic == AutoServices::Off
    {
        return None;
    }
    if let Some(execution) = call.context.resumed_execution() {
        let info = call.info(&execution.to_string()).ok()?;
        info.spec.lifetime.plan()?;
    }
    let detected = call.engine.detect(request)?;
    Some(ServiceReason::Recognised {
        detected: Box::new(detected),
        opt_out,
        timeout: request.timeout,
    })
}

/// Whether what nobody asked to be a service was none: it ended well before it was ready,
/// and not because its port was taken: some servers give up with exit code 0 there.
pub(in crate::mcp::tools) fn was_one_shot(call: ToolCall<'_>, waited: &WaitOutcome) -> bool {
    let info = &waited.info;
    let automatic = info.spec.lifetime.plan().is_some_and(|plan| plan.automatic);
    let ending = info.state.ending.as_ref();
    automatic
        && waited.end == WaitEnd::Exit
        && ending.is_some_and(|ending| ending.is_success())
        && !call.engine.hit_port_conflict(info.id)
}

impl ServiceReason {
    /// The request as one for a service.
    pub(in crate::mcp::tools) fn request(&self, mut start: StartRequest) -> ServiceRequest {
        let automatic = match self {
            Self::Requested => false,
            Self::Recognised { .. } => true,
        };
        let ready_timeout = start.timeout.take_if(|_| automatic);
        ServiceRequest {
            automatic,
            ready_timeout,
            ..ServiceRequest::new(start)
        }
    }

    /// What the answer says of it.
    pub(in crate::mcp::tools) fn note(&self) -> Option<String> {
        match self {
            Self::Requested => None,
            Self::Recognised {
                detected: found,
                opt_out: otherwise,
                timeout,
            } => {
                let title = clean(&found.title);
                let bound = timeout.map(|timeout| {
                    let seconds = timeout.as_secs();
                    format!(": its timeout of {seconds} s bounds the wait until it is ready")
                });
                let bound = bound.unwrap_or_default();
                Some(format!(
                    "Recognised as a service ({title}){bound}; {otherwise} runs it as a plain command."
                ))
            }
        }
    }

    /// The answer of a tool that starts commands: document 004's words, the tool's own fields
    /// and those of the service.
    pub(in crate::mcp::tools) async fn reply(
        &self,
        call: ToolCall<'_>,
        launched: ServiceLaunch,
        mut fields: Map<String, Value>,
    ) -> ToolReply {
        let outcome = ServiceOutcome {
            launch: launched,
            note: self.note(),
            reused: None,
            completes: false,
        };
        let service_reply = outcome.into_reply(call).await;
        fields.insert("service".to_owned(), service_reply.fields);
        ToolReply::text(vec![service_reply.text], Value::Object(fields))
    }
}
