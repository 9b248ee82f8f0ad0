//! The output of an execution as text blocks (F3).

use ostler_engine::{Info, lost_bytes};
use ostler_journal::{Gap, Journal, LineQuery, ReadError};
use ostler_model::Cursor;
use serde_json::{Map, Value, json};

use super::context::Call;
use crate::error::Failure;
use crate::reading::forward::{Page, page};
use crate::reading::{Slice, last_line, slice};
use crate::render::{Budget, Excerpt, Material, Omitted, REPLY_CHARS, excerpt};

/// Kept free for what stands around output: status, notes, an error's text.
pub(super) const FRAME_CHARS: usize = 1_200;

/// What an execution printed, rendered: both streams in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) excerpt: Excerpt,
    /// Where to go on.
    pub(super) next: Cursor,
    /// Lines that are there behind a page.
    pub(super) left: u64,
    /// Things to be told about the output itself.
    pub(super) notes: Vec<String>,
}

/// Everything an execution printed, within the budget of one reply.
pub(super) async fn printed(
    call: Call<'_>,
    info: &Info,
    block_lines: usize,
) -> Result<Printed, Failure> {
    let budget = Budget::new(REPLY_CHARS - FRAME_CHARS, block_lines);
    selected(call, info, LineQuery::default(), budget).await
}

/// What an execution printed and `query` matches, within `budget`.
pub(super) async fn selected(
    call: Call<'_>,
    info: &Info,
    query: LineQuery,
    budget: Budget,
) -> Result<Printed, Failure> {
    let Some((journal, query)) = source(call, info, query)? else {
        return Ok(Printed::nothing(info));
    };
    let slice = slice(&journal, info, query).await?;
    let notes = notes(info, &journal, &slice)?;
    Ok(Printed::of_slice(slice, notes, |material| {
        excerpt(material, budget)
    }))
}

/// The lines from the query's position on, as many as `budget` holds.
pub(super) async fn paged(
    call: Call<'_>,
    info: &Info,
    query: LineQuery,
    budget: Budget,
) -> Result<Printed, Failure> {
    let Some((journal, query)) = source(call, info, query)? else {
        return Ok(Printed::nothing(info));
    };
    let page = page(&journal, info, query, budget.chars, move |rows| {
        whole(Material::whole(rows), budget)
    });
    let page = page.await?;
    let notes = notes(info, &journal, &page.rows)?;
    Ok(Printed::of_page(page, notes))
}

/// All of the lines, whatever they cost.
pub(super) fn whole(material: Material, budget: Budget) -> Vec<String> {
    let budget = Budget {
        chars: usize::MAX,
        ..budget
    };
    excerpt(material, budget).blocks
}

/// Where an execution's lines are read, and how its last one is; none where there are none.
fn source(
    call: Call<'_>,
    info: &Info,
    query: LineQuery,
) -> Result<Option<(Journal, LineQuery)>, Failure> {
    let unfinished = last_line(info);
    let query = LineQuery {
        unfinished,
        ..query
    };
    Ok(journal(call, info)?.map(|journal| (journal, query)))
}

/// The journal of an execution; none where nothing was printed, or where a wait was over before
/// the process was born.
fn journal(call: Call<'_>, info: &Info) -> Result<Option<Journal>, Failure> {
    if info.output_end == 0 && info.state.is_finished() {
        return Ok(None);
    }
    match call.engine.journal(call.caller, &info.id.short()) {
        Err(ostler_engine::Error::Output(ReadError::Missing { .. }))
            if info.output_end == 0 && !info.state.is_finished() =>
        {
            Ok(None)
        }
        journal => Ok(Some(journal?)),
    }
}

impl Printed {
    fn nothing(info: &Info) -> Self {
        Self {
            next: info.cursor(),
            ..Self::default()
        }
    }

    /// What `show` makes of lines from both ends.
    pub(super) fn of_slice(
        slice: Slice,
        notes: Vec<String>,
        show: impl FnOnce(Material) -> Excerpt,
    ) -> Self {
        Self {
            next: slice.next,
            notes,
            left: 0,
            excerpt: show(slice.material()),
        }
    }

    /// Lines from a position on.
    pub(super) fn of_page(page: Page, notes: Vec<String>) -> Self {
        Self {
            next: page.next,
            left: page.left,
            notes,
            excerpt: Excerpt {
                blocks: page.blocks,
                ..Excerpt::default()
            },
        }
    }

    /// Its text; each stream under its own heading.
    pub(super) fn blocks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.excerpt.blocks)
    }

    /// Whether anything was left out.
    pub(super) const fn is_cut(&self) -> bool {
        self.excerpt.omitted.is_some() || self.left > 0
    }

    /// What was left out, for programs.
    pub(super) fn fields(&self, fields: &mut Map<String, Value>) {
        for (name, omitted) in [
            ("stdout", self.excerpt.output_omitted),
            ("stderr", self.excerpt.errors_omitted),
        ] {
            if let Some(omitted) = omitted {
                fields.insert(format!("{name}_omitted"), omitted_fields(omitted));
            }
        }
        if self.left > 0 {
            fields.insert("lines_left".to_owned(), self.left.into());
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

/// What there is to tell about the output itself: what is gone of it, and how it is shown.
///
/// # Errors
/// When the files cannot be read.
pub(super) fn notes(
    info: &Info,
    journal: &Journal,
    slice: &Slice,
) -> Result<Vec<String>, ReadError> {
    let mut notes: Vec<String> = slice.gap.iter().map(|gap| gone(info, *gap)).collect();
    if let Some((from, to)) = slice.stretch() {
        let lost = lost_bytes(info, journal, from..to)?;
        if lost > 0 {
            notes.push(format!(
                "{lost} bytes of output between these lines were lost"
            ));
        }
    }
    shown_notes(slice, &mut notes);
    Ok(notes)
}

/// That output is gone, and whether it was dropped or lost.
pub(super) fn gone(info: &Info, gap: Gap) -> String {
    let bytes = gap.to.saturating_sub(gap.from);
    match info.state.lost_bytes(gap.from, gap.to) {
        0 => format!("{bytes} bytes of earlier output are gone (cleared or trimmed)"),
        lost if lost == bytes => format!("{bytes} bytes of earlier output were lost"),
        lost => format!(
            "{bytes} bytes of earlier output are gone: {lost} of them were lost, the others \
             cleared or trimmed"
        ),
    }
}

fn shown_notes(slice: &Slice, notes: &mut Vec<String>) {
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
    if slice.has_binary() {
        notes.push("`ostler logs --raw ID` gives the bytes of binary output".to_owned());
    }
    let overwritten = slice.overwritten();
    if overwritten > 0 {
        notes.push(format!(
            "{overwritten} lines that redraws overwrote are shown in their last state"
        ));
    }
}
