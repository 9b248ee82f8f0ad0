//! `poll_process`: how a process is, with its last lines where they are asked for.

use ostler_engine::Info;
use ostler_model::StreamName;
use serde::Serialize;

use super::lines::{End, Read, read};
use super::process::{Ended, LINES_LIMIT, PROCESS_ID, Process, STREAMS};
use super::spent::leftovers;
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};
use crate::render::walls;

pub(super) const DEFINITION: Definition = Definition {
    name: "poll_process",
    title: "Poll Process Status",
    about: "Check the status of an asynchronously running process. Optionally retrieve the last \
            N lines of output (max 100 lines). Only processes from the current session can be \
            queried.",
    parameters: &[
        PROCESS_ID,
        Parameter::optional(
            "tail",
            Kind::Object(TAIL),
            "Get last N lines from stdout or stderr",
        ),
    ],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

const TAIL: &[Parameter] = &[
    Parameter::optional("src", STREAMS, "Stream").or_text("stdout"),
    Parameter::optional(
        "n",
        Kind::Clamped(1, LINES_LIMIT),
        "Number of lines (max 100)",
    )
    .or(10),
];

/// What is answered.
#[derive(Debug, Serialize)]
struct Polled {
    #[serde(flatten)]
    process: Process,
    #[serde(flatten)]
    ended: Ended,
    stdout_size: u64,
    stderr_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Tail>,
    /// What else is to be known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// The last lines of one stream.
#[derive(Debug, Serialize)]
struct Tail {
    src: StreamName,
    lines: Vec<String>,
}

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let id = arguments.required_text("process_id");
    let info = call.info(&id)?;
    let mut notes = notes(&info);
    let tail = match arguments.object("tail") {
        Some(wanted) => Some(tail(call, &info, wanted, &mut notes).await?),
        None => None,
    };
    let stats = call.engine.journal(call.caller, &id)?.stats()?;
    call.told(&info);
    Ok(Reply::status(&Polled {
        process: Process::from(&info),
        ended: Ended::from(&info),
        stdout_size: stats.of(StreamName::Stdout).bytes,
        stderr_size: stats.of(StreamName::Stderr).bytes,
        tail,
        notes,
    }))
}

async fn tail(
    call: Call<'_>,
    info: &Info,
    mut wanted: Arguments,
    notes: &mut Vec<String>,
) -> Result<Tail, Failure> {
    let src = stream(&wanted.required_text("src"));
    let end = End::Tail(wanted.count("n").unwrap_or_default());
    let Read { lines, notes: told } = read(call, info, src, end).await?;
    notes.extend(told);
    Ok(Tail { src, lines })
}

/// The stream with this name.
pub(super) fn stream(word: &str) -> StreamName {
    if word == "stderr" {
        StreamName::Stderr
    } else {
        StreamName::Stdout
    }
}

fn notes(info: &Info) -> Vec<String> {
    let lost = info.state.degraded.iter().cloned();
    leftovers(info)
        .into_iter()
        .chain(lost)
        .chain(walls::level(&info.spec.policy, &info.isolation_warnings()))
        .collect()
}
