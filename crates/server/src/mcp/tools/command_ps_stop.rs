//! `command_ps_stop`: end a process with its tree.

use ostler_engine::StopRequest;

use super::registry::{Definition, Hints};
use super::status::{Stopped, object_schema};
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::params::{Arguments, Kind, Parameter};

pub(super) const PID: Parameter = Parameter::required("pid", Kind::Text, "Process id, a string");

pub(super) const DEFINITION: Definition = Definition {
    name: "command_ps_stop",
    title: "Stop a process",
    about: "End a process and everything it started; answers when it has ended. Politely first, \
            killed after 5 s; with force at once.",
    parameters: &[
        PID,
        Parameter::optional("force", Kind::Flag, "Kill at once").or_flag(false),
        Parameter::optional("reason", Kind::Text, "Why, for the record"),
    ],
    hints: Hints::ENDS,
    output: Some(|| object_schema(&[("pid", "string"), ("status", "string")])),
};

pub(super) async fn call(call: Call<'_>, mut arguments: Arguments) -> Result<Reply, Failure> {
    let id = arguments.required_text("pid");
    let request = StopRequest {
        force: arguments.flag("force"),
        grace: None,
        reason: arguments.text("reason"),
    };
    let was_running = !call.info(&id)?.state.is_finished();
    let info = call.engine.stop(call.caller, &id, request).await?;
    Ok(Reply::status(&Stopped::new(&info, was_running)))
}
