//! Commands that are services although nobody said so (E2).

use std::time::Duration;

use ostler_engine::detection::Detected;
use ostler_engine::{Automatic, ServiceRequest, StartRequest, StdinRequest, WaitEnd, Waited};
use serde_json::{Map, Value};

use super::launch::Launched;
use super::outcome::Outcome;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::render::clean;

/// Why a command runs as a service.
#[derive(Debug, Clone)]
pub(in crate::mcp::tools) enum Way {
    /// The caller said so.
    Asked,
    /// The table knows it.
    Recognised {
        /// As what.
        found: Box<Detected>,
        /// What makes it a plain command, for the answer.
        otherwise: &'static str,
        /// The time limit it was given.
        timeout: Option<Duration>,
    },
}

/// How a command of which nobody said that it is a service runs as one: the table knows it,
/// and no input says that its end is what it is run for. A time limit does not: many give one
/// out of habit, and there it bounds the wait until it is ready. None where services are not looked for, and where this request goes on with what was none.
pub(in crate::mcp::tools) fn recognised(
    call: Call<'_>,
    request: &StartRequest,
    otherwise: &'static str,
) -> Option<Way> {
    if request.stdin != StdinRequest::Default
        || call.engine.settings().services.automatic == Automatic::Off
    {
        return None;
    }
    if let Some(execution) = call.link.resumes() {
        let info = call.info(&execution.to_string()).ok()?;
        info.spec.lifetime.plan()?;
    }
    let found = call.engine.detect(request)?;
    Some(Way::Recognised {
        found: Box::new(found),
        otherwise,
        timeout: request.timeout,
    })
}

/// Whether what nobody asked to be a service was none (E4): it ended well before it was ready,
/// and not because its port was taken: some servers give up with exit code 0 there.
pub(in crate::mcp::tools) fn one_shot(call: Call<'_>, waited: &Waited) -> bool {
    let info = &waited.info;
    let automatic = info.spec.lifetime.plan().is_some_and(|plan| plan.automatic);
    let ending = info.state.ending.as_ref();
    automatic
        && waited.why == WaitEnd::Exit
        && ending.is_some_and(|ending| ending.is_success())
        && !call.engine.met_a_taken_port(info.id)
}

impl Way {
    /// The request as one for a service.
    pub(in crate::mcp::tools) fn request(&self, mut start: StartRequest) -> ServiceRequest {
        let automatic = match self {
            Self::Asked => false,
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
            Self::Asked => None,
            Self::Recognised {
                found,
                otherwise,
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
        call: Call<'_>,
        launched: Launched,
        mut fields: Map<String, Value>,
    ) -> Reply {
        let outcome = Outcome {
            launched,
            note: self.note(),
            reused: None,
            completes: false,
        };
        let answered = outcome.answered(call).await;
        fields.insert("service".to_owned(), answered.fields);
        Reply::text(vec![answered.text], Value::Object(fields))
    }
}
