//! `command_ps_stop`: end a process with its tree.

use ostler_engine::StopRequest;

use super::status::Stopped;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};

pub(super) const PID: Parameter = Parameter::required("pid", Kind::Text, "");

pub(super) const DEFINITION: Definition = Definition {
    name: "command_ps_stop",
    title: "",
    about: "End a process with everything it started: killed after 5 s, with force at once.",
    parameters: &[
        PID,
        Parameter::optional("force", Kind::Flag, "").or_flag(false),
        Parameter::optional("reason", Kind::Text, ""),
    ],
    hints: Hints::ENDS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let id = arguments.required_text("pid");
    let request = StopRequest {
        force: arguments.flag("force"),
        grace: None,
        reason: arguments.text("reason"),
    };
    let was_running = !call.info(&id)?.state.is_finished();
    let info = call.engine.stop(call.caller, &id, request).await?;
    call.told(&info);
    Ok(Reply::status(&Stopped::new(&info, was_running)))
}
