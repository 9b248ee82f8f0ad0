//! The output of an execution as text blocks (F3).

use ostler_engine::Info;
use ostler_journal::{LineQuery, ReadError};
use ostler_model::Cursor;
use serde_json::{Map, Value, json};

use super::context::Call;
use crate::error::Failure;
use crate::reading::{Slice, Streams, last_line, streams};
use crate::render::{Budget, Excerpt, Omitted, REPLY_CHARS, cost, excerpt};

/// Kept free for what stands around output: status, notes, an error's text.
pub(super) const FRAME_CHARS: usize = 1_200;
/// Standard error gets at least this share of the budget, in tenths: it is where what failed
/// is told most often.
const STDERR_TENTHS: usize = 5;

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
    let budget = Budget {
        chars: REPLY_CHARS - FRAME_CHARS,
        block_lines,
    };
    selected(call, info, LineQuery::default(), budget).await
}

/// What an execution printed and `query` matches, each stream by itself, within `budget`.
pub(super) async fn selected(
    call: Call<'_>,
    info: &Info,
    query: LineQuery,
    budget: Budget,
) -> Result<Printed, Failure> {
    if info.output_end == 0 && info.state.is_finished() {
        return Ok(Printed {
            next: info.cursor(),
            ..Printed::default()
        });
    }
    let journal = match call.engine.journal(call.caller, &info.id.short()) {
        // A wait can be over before the process is born.
        Err(ostler_engine::Error::Output(ReadError::Missing { .. }))
            if info.output_end == 0 && !info.state.is_finished() =>
        {
            return Ok(Printed {
                next: info.cursor(),
                ..Printed::default()
            });
        }
        journal => journal?,
    };
    let query = LineQuery {
        unfinished: last_line(info),
        ..query
    };
    let Streams {
        output,
        errors,
        next,
    } = streams(&journal, info, query).await?;
    let mut notes = notes(&output);
    notes.extend(self::notes(&errors));
    notes.dedup();
    let (for_output, for_errors) = share(&output, &errors, budget);
    let shown = |slice: Slice, chars| excerpt(slice.material(), Budget { chars, ..budget });
    Ok(Printed {
        stdout: shown(output, for_output),
        stderr: shown(errors, for_errors),
        next,
        notes,
    })
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
    if slice.unsearched > 0 {
        notes.push(format!(
            "{} bytes in the middle were not searched for failures; grep finds them",
            slice.unsearched
        ));
    }
    let overwritten = slice.overwritten();
    if overwritten > 0 {
        notes.push(format!(
            "{overwritten} lines that redraws overwrote are shown in their last state"
        ));
    }
    notes
}

/// How much of the budget each stream gets: all it wants, unless both want more than there is.
fn share(stdout: &Slice, stderr: &Slice, budget: Budget) -> (usize, usize) {
    let room = budget.chars;
    let wants = |slice: &Slice| {
        if slice.is_partial() {
            room
        } else {
            cost(&slice.front, budget.block_lines).min(room)
        }
    };
    let guaranteed = room * STDERR_TENTHS / 10;
    let for_stderr = wants(stderr).min(guaranteed.max(room - wants(stdout)));
    (room - for_stderr, for_stderr)
}
