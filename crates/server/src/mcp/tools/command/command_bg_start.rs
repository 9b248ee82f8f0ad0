//! `command_bg_start`: start one command, answer at once.

use super::starting::{self, OTHERWISE, TIMEOUT_LIMIT_S};
use super::status::Started;
use crate::mcp::consent;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::tools::service::{failed_to_start, launch, recognised};
use crate::mcp::waiting::Options;
use crate::params::{Arguments, Kind, Parameter};

pub(super) const DEFINITION: Definition = Definition {
    name: "command_bg_start",
    title: "",
    about: "Start one program in the background and answer its pid at once. No shell.",
    parameters: &[
        starting::COMMAND,
        starting::ARGS,
        starting::DIRECTORY,
        Parameter::required("description", Kind::Text, ""),
        Parameter::optional("labels", Kind::List, ""),
        starting::STDIN,
        starting::ENVS,
        starting::ENCODING,
        Parameter::optional(
            "timeout",
            Kind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds; default none",
        ),
        starting::ISOLATION,
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let mut request = starting::request(call, &mut arguments)?;
    request.description = arguments.required_text("description");
    request.labels = arguments.list("labels");
    if let Some(way) = recognised(call, &request, OTHERWISE) {
        return match launch(call, way.request(request), Options::at_once()).await {
            Ok(launched) => {
                let info = &launched.waited.info;
                Ok(Reply::status(&Started::service(info, way.note())))
            }
            Err(interrupted) => failed_to_start(interrupted),
        };
    }
    let begun = consent::begin(call, request).await?;
    let info = call.give_out(begun);
    Ok(Reply::status(&Started::from(&info)))
}
