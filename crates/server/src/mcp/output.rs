//! The output of an execution as text blocks (F3).

use ostler_engine::Info;
use ostler_journal::{LineQuery, StreamSet};
use ostler_model::{Cursor, StreamName};
use serde_json::{Map, Value, json};

use super::context::Call;
use crate::error::Failure;
use crate::reading::{Slice, last_line, slice};
use crate::render::{Budget, Excerpt, Omitted, REPLY_CHARS, cost, excerpt};

/// Kept free for what stands around output: status, notes, an error's text.
pub(super) const FRAME_CHARS: usize = 1_200;
/// Standard error gets at least this share of the budget, in tenths.
const STDERR_TENTHS: usize = 3;

/// Both streams of an execution, rendered.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) stdout: Excerpt,
    pub(super) stderr: Excerpt,
    /// Where to go on.
    pub(super) next: Cursor,
    /// Things to be told about the output itself.
    pub(super) notes: Vec<String>,
}

/// Everything an execution printed, each stream by itself, within the budget of one reply.
pub(super) async fn printed(
    call: Call<'_>,
    info: &Info,
    block_lines: usize,
) -> Result<Printed, Failure> {
    if info.output_end == 0 && info.state.is_finished() {
        return Ok(Printed {
            next: info.cursor(),
            ..Printed::default()
        });
    }
    let journal = call.engine.journal(call.caller, &info.id.short())?;
    let everything = slice(&journal, info, query(info, StreamSet::OUTPUT)).await?;
    let mut printed = Printed {
        next: everything.next,
        notes: notes(&everything),
        ..Printed::default()
    };
    let (stdout, stderr) = if everything.hidden.is_none() {
        by_stream(everything)
    } else {
        let output = StreamSet::only(StreamName::Stdout).with(StreamName::Pty);
        let errors = StreamSet::only(StreamName::Stderr);
        (
            slice(&journal, info, query(info, output)).await?,
            slice(&journal, info, query(info, errors)).await?,
        )
    };
    let (for_stdout, for_stderr) = share(&stdout, &stderr, block_lines);
    printed.stdout = shown(stdout, for_stdout, block_lines);
    printed.stderr = shown(stderr, for_stderr, block_lines);
    Ok(printed)
}

impl Printed {
    /// Standard output, then standard error under its own heading.
    pub(super) fn blocks(&mut self) -> Vec<String> {
        let mut blocks = std::mem::take(&mut self.stdout.blocks);
        let mut errors = std::mem::take(&mut self.stderr.blocks);
        if let Some(first) = errors.first_mut() {
            first.insert_str(0, "[stderr]\n");
        }
        blocks.append(&mut errors);
        blocks
    }

    /// Whether anything was left out.
    pub(super) const fn is_cut(&self) -> bool {
        self.stdout.omitted.is_some() || self.stderr.omitted.is_some()
    }

    /// What was left out, for programs.
    pub(super) fn fields(&self, fields: &mut Map<String, Value>) {
        for (name, excerpt) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if let Some(omitted) = excerpt.omitted {
                fields.insert(format!("{name}_omitted"), omitted_fields(omitted));
            }
        }
    }
}

/// What was left out, for programs.
pub(super) fn omitted_fields(omitted: Omitted) -> Value {
    let cursor = Cursor {
        offset: omitted.offset,
        event: 0,
    };
    json!({"lines": omitted.lines, "bytes": omitted.bytes, "cursor": cursor})
}

/// What there is to tell about the output itself.
pub(super) fn notes(slice: &Slice) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(gap) = slice.gap {
        let bytes = gap.to.saturating_sub(gap.from);
        notes.push(format!(
            "{bytes} bytes of earlier output are gone (cleared or trimmed)"
        ));
    }
    if let Some(offset) = slice.damaged {
        notes.push(format!(
            "the journal is damaged at byte {offset}; what follows cannot be read"
        ));
    }
    notes
}

fn query(info: &Info, streams: StreamSet) -> LineQuery {
    LineQuery {
        streams,
        unfinished: last_line(info),
        ..LineQuery::default()
    }
}

fn by_stream(slice: Slice) -> (Slice, Slice) {
    let (stderr, stdout) = slice
        .front
        .into_iter()
        .partition(|row| row.stream == StreamName::Stderr);
    let of = |front| Slice {
        front,
        ..Slice::default()
    };
    (of(stdout), of(stderr))
}

/// How much of the budget each stream gets: all it wants, unless both want more than there is.
fn share(stdout: &Slice, stderr: &Slice, block_lines: usize) -> (usize, usize) {
    let room = REPLY_CHARS - FRAME_CHARS;
    let wants = |slice: &Slice| match slice.hidden {
        Some(_) => room,
        None => cost(&slice.front, block_lines).min(room),
    };
    let guaranteed = room * STDERR_TENTHS / 10;
    let for_stderr = wants(stderr).min(guaranteed.max(room - wants(stdout)));
    (room - for_stderr, for_stderr)
}

fn shown(slice: Slice, chars: usize, block_lines: usize) -> Excerpt {
    let budget = Budget { chars, block_lines };
    excerpt(slice.front, slice.hidden, slice.back, budget)
}
