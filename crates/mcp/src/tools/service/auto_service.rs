//! Commands that run as services without a request for one.

use std::time::Duration;

use ostler_engine::detection::DetectedService;
use ostler_engine::{
    AutoServices, ServiceRequest, StartRequest, StdinRequest, WaitEnd, WaitOutcome,
};
use ostler_render::clean;
use serde_json::{Map, Value};

use super::launch_wait::ServiceLaunch;
use super::start_result::ServiceOutcome;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;

/// Why a command runs as a service.
#[derive(Debug, Clone)]
pub(in crate::tools) enum ServiceReason {
    /// The caller requested it.
    Requested,
    /// The detection table matches it.
    Recognised {
        /// The matching entry.
        detected: Box<DetectedService>,
        /// How to run it as a plain command, for the answer.
        opt_out: &'static str,
        /// The timeout in the call.
        timeout: Option<Duration>,
    },
}

/// Why a command that was not requested to be a service runs as one: the detection table matches
/// it, and no input implies that it is run for its end. A timeout does not imply that: many calls
/// give one out of habit, and then it bounds the wait for readiness. None where detection is off,
/// and where this request resumes a plain command.
pub(in crate::tools) fn detect_service(
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
        timeout: request.options.timeout,
    })
}

/// Whether a recognised service was none: it ended successfully before it was ready, and not
/// because of a port conflict, where some servers exit with code 0.
pub(in crate::tools) fn was_one_shot(call: ToolCall<'_>, waited: &WaitOutcome) -> bool {
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
    pub(in crate::tools) fn request(&self, mut start: StartRequest) -> ServiceRequest {
        let automatic = match self {
            Self::Requested => false,
            Self::Recognised { .. } => true,
        };
        let ready_timeout = start.options.timeout.take_if(|_| automatic);
        ServiceRequest {
            automatic,
            ready_timeout,
            ..ServiceRequest::new(start)
        }
    }

    /// The note in the answer.
    pub(in crate::tools) fn note(&self) -> Option<String> {
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

    /// The answer of a tool that starts commands: the text about the service, the tool's own fields
    /// and those of the service.
    pub(in crate::tools) async fn reply(
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
