//! `process`: look at what runs and has ended, read its output, wait.

use std::time::Duration;

use ostler_engine::{WaitEnd, WaitFor, Waited};
use ostler_model::{Io, Stdin};
use serde_json::{Map, Value, json};

use super::action::{self, Action, ID, IDS, about};
use super::detail;
use super::select::{CURSOR, GREP, MAX_CHARS, RAW, SINCE, STREAM, Selection, TAIL};
use super::shown::{self, Shown};
use super::terminal;
use super::until::{self, IDLE, PATTERN, UNTIL, WAIT_LIMIT_MS};
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::{Interrupted, Link, Reply};
use crate::mcp::several;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::waiting::{self, OnPrompt, Options};
use crate::params::{Arguments, Kind, Parameter};

/// How long action `wait` waits unless it says otherwise.
const WAIT: Duration = Duration::from_secs(30);
/// Room without which one of several is told of without its output, in characters.
const LEAST_CHARS: usize = 1_600;
/// Characters between two executions of one answer.
pub(super) const SEPARATOR: &str = "\n\n";

const ACTIONS: &[Action] = &[
    Action {
        word: "list",
        needs: &[],
        takes: &["labels", "status", "cursor"],
    },
    Action {
        word: "output",
        needs: &["ids"],
        takes: &[
            "cursor",
            "stream",
            "since",
            "tail",
            "grep",
            "raw",
            "max_chars",
        ],
    },
    Action {
        word: "wait",
        needs: &["ids"],
        takes: &[
            "wait_ms",
            "until",
            "pattern",
            "idle_ms",
            "all",
            "cursor",
            "stream",
            "since",
            "tail",
            "grep",
            "raw",
            "max_chars",
        ],
    },
    Action {
        word: "screen",
        needs: &["ids"],
        takes: &[],
    },
    Action {
        word: "detail",
        needs: &["ids"],
        takes: &[],
    },
];

pub(super) const DEFINITION: Definition = Definition {
    name: "process",
    title: "",
    about: "Look at what exec started; changes nothing. list: running ones first, then the newest. \
            output: what ids printed; with cursor the next page. wait: until one of ids (all: \
            each) ends or until holds, then its output. screen: what is on its terminal. detail: \
            times, exit, limits, use.",
    parameters: &[
        Parameter::required(
            "action",
            Kind::Choice(&["list", "output", "wait", "screen", "detail"]),
            "What to show",
        ),
        IDS,
        ID,
        CURSOR,
        GREP,
        TAIL,
        STREAM,
        SINCE,
        UNTIL,
        PATTERN.told("Regex that wait waits for"),
        IDLE.unlisted(),
        Parameter::optional(
            "wait_ms",
            Kind::Integer(0, WAIT_LIMIT_MS),
            "For wait; default 30000",
        ),
        Parameter::optional("all", Kind::Flag, "wait: for each of ids"),
        Parameter::optional("labels", Kind::List, "list: those with all of these"),
        Parameter::optional(
            "status",
            Kind::Choice(&["running", "ended", "failed"]),
            "list: only these",
        ),
        RAW,
        MAX_CHARS,
    ],
    hints: Hints::READS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    match action::chosen(ACTIONS, &mut arguments)? {
        "output" => output(call, arguments).await,
        "wait" => wait(call, arguments).await,
        "screen" => terminal::screen(call, &action::ids(&mut arguments)?).await,
        "detail" => Ok(detail::details(call, &action::ids(&mut arguments)?)?),
        _ => Ok(detail::list(call, &mut arguments)?),
    }
}

async fn output(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let (ids, selection) = asked(call, &mut arguments)?;
    let mut seen = Vec::with_capacity(ids.len());
    for id in &ids {
        let info = call.info(id)?;
        seen.push(Waited {
            cursor: info.cursor(),
            why: WaitEnd::Nothing,
            info,
        });
    }
    Ok(told(call, &seen, &selection, |_| true).await?)
}

async fn wait(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let (ids, mut selection) = asked(call, &mut arguments)?;
    // Whoever waits wants the end, and what failed before it.
    selection.paged = false;
    let at_most = until::wait(&arguments).unwrap_or(WAIT);
    let all = arguments.flag("all");
    let reason = until::reason(&mut arguments, selection.query.from)?;
    for id in &ids {
        until::can_be_ready(&call.info(id)?, &reason)?;
    }
    let waited = match ids.as_slice() {
        [id] => vec![one(call, id, &reason, at_most).await?],
        _ => several::wait(call, &ids, &reason, (all, at_most)).await?,
    };
    let single = waited.len() == 1;
    let shows = |it: &Waited| single || it.why != WaitEnd::AtMost;
    Ok(told(call, &waited, &selection, shows).await?)
}

/// Waits on one; what has an open input may ask for it.
async fn one(
    call: Call<'_>,
    id: &str,
    reason: &WaitFor,
    at_most: Duration,
) -> Result<Waited, Interrupted> {
    let info = call.info(id)?;
    let open = Io::Pipes { stdin: Stdin::Open };
    let options = Options {
        at_most: Some(at_most),
        may_be_task: false,
        on_prompt: if info.spec.io == open {
            OnPrompt::Tell
        } else {
            OnPrompt::Ignore
        },
    };
    waiting::wait(call, id, reason, options).await
}

/// Which ids, and what of their output; every id is known.
fn asked(call: Call<'_>, arguments: &mut Arguments) -> Result<(Vec<String>, Selection), Failure> {
    let ids = action::ids(arguments)?;
    let selection = Selection::read(arguments)?;
    if ids.len() > 1 && selection.query.from.is_some() {
        return Err(Failure::value(
            "a cursor belongs to one process; allowed: one entry in 'ids', or no cursor",
        ));
    }
    for id in &ids {
        call.info(id)
            .map_err(|error| about(id, Failure::from(error)))?;
    }
    Ok((ids, selection))
}

/// Every execution in the order asked, those that `shows` with their output as long as there
/// is room for it; together within the selection's characters.
async fn told(
    call: Call<'_>,
    waited: &[Waited],
    selection: &Selection,
    shows: impl Fn(&Waited) -> bool,
) -> Result<Reply, Failure> {
    let lines = waited.iter().map(|it| shown::line(call, it));
    let mut parts: Vec<Shown> = lines.collect();
    let lines: usize = parts.iter().map(Shown::chars).sum();
    let mut room = selection.chars.saturating_sub(lines);
    let mut left = waited.iter().filter(|it| shows(it)).count();
    for (it, part) in waited.iter().zip(&mut parts) {
        // The line is part of what is shown instead of it.
        let line = part.chars();
        if !shows(it) || room + line < LEAST_CHARS {
            continue;
        }
        let share = Selection {
            chars: (room / left.max(1)).max(LEAST_CHARS - line) + line - SEPARATOR.len(),
            ..selection.clone()
        };
        *part = shown::shown(call, it, &share).await?;
        room = (room + line).saturating_sub(part.chars());
        left -= 1;
    }
    Ok(joined(parts))
}

/// One answer; the fields of one execution stand by themselves, those of several in a list.
fn joined(mut parts: Vec<Shown>) -> Reply {
    if parts.len() == 1 {
        return parts.remove(0).reply();
    }
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    let text = texts.join(SEPARATOR);
    let links: Vec<Link> = parts
        .iter_mut()
        .filter_map(|part| part.link.take())
        .collect();
    let fields: Vec<Map<String, Value>> = parts.into_iter().map(|part| part.fields).collect();
    let mut reply = Reply::text(vec![text], json!({"processes": fields}));
    reply.links = links;
    reply
}
