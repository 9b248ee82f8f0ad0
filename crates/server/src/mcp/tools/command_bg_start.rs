//! `command_bg_start`: start one command, answer at once.

use super::registry::{Definition, Hints};
use super::starting::{self, TIMEOUT_LIMIT_S};
use super::status::{Started, object_schema};
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::params::{Arguments, Kind, Parameter};

pub(super) const DEFINITION: Definition = Definition {
    name: "command_bg_start",
    title: "Start a background process",
    about: "Start one program in the background and answer its pid at once. It goes on until it \
            ends, is stopped or its timeout runs out. No shell interprets the command.",
    parameters: &[
        starting::COMMAND,
        starting::ARGS,
        starting::DIRECTORY,
        Parameter::required("description", Kind::Text, "What it is for"),
        Parameter::optional("labels", Kind::List, "Labels to find it by"),
        starting::STDIN,
        starting::ENVS,
        starting::ENCODING,
        Parameter::optional(
            "timeout",
            Kind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds until it is ended; without it, never",
        ),
        starting::ISOLATION,
    ],
    hints: Hints::RUNS,
    output: Some(|| object_schema(&[("pid", "string"), ("status", "string")])),
};

pub(super) async fn call(call: Call<'_>, mut arguments: Arguments) -> Result<Reply, Failure> {
    let mut request = starting::request(call, &mut arguments)?;
    request.description = arguments.required_text("description");
    request.labels = arguments.list("labels");
    let begun = call.engine.begin(call.caller, request).await?;
    let info = begun.keep();
    Ok(Reply::status(&Started::from(&info)))
}
