//! The output of an execution as text blocks.

use ostler_engine::{ExecutionInfo, lost_bytes, lost_tail};
use ostler_journal::{Gap, Journal, LineQuery, ReadError};
use ostler_model::Cursor;
use ostler_render::RowSlice;
use ostler_render::TextPage;
use ostler_render::{Excerpt, ExcerptBudget, ExcerptInput, OmittedLines, REPLY_CHARS, excerpt};
use serde_json::{Map, Value, json};

use super::tool_call::ToolCall;
use ostler_interface::error::ApiError;
use ostler_interface::output_reader::read_page;
use ostler_interface::output_reader::{read_slice, unfinished_mode};

/// Reserved for the text around output: status, notes, an error's text.
pub(super) const FRAME_CHARS: usize = 1_200;

/// The rendered output of an execution: both streams in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct OutputBlocks {
    pub(super) excerpt: Excerpt,
    /// The position to continue from.
    pub(super) next: Cursor,
    /// Lines that follow a page.
    pub(super) lines_left: u64,
    /// Notes about the output itself.
    pub(super) notes: Vec<String>,
}

/// Everything an execution printed, within the budget of one reply.
pub(super) async fn read_output(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    block_lines: usize,
) -> Result<OutputBlocks, ApiError> {
    let budget = ExcerptBudget::new(REPLY_CHARS - FRAME_CHARS, block_lines);
    read_selected(call, info, LineQuery::default(), budget).await
}

/// The output of an execution that `query` matches, within `budget`.
pub(super) async fn read_selected(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    query: LineQuery,
    budget: ExcerptBudget,
) -> Result<OutputBlocks, ApiError> {
    let Some((journal, query)) = line_source(call, info, query)? else {
        return Ok(OutputBlocks::empty(info));
    };
    let slice = read_slice(&journal, info, query).await?;
    let notes = output_notes(info, &journal, &slice)?;
    Ok(OutputBlocks::from_slice(slice, notes, |material| {
        excerpt(material, budget)
    }))
}

/// The lines from the query's position on, as many as `budget` holds.
pub(super) async fn read_whole_page(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    query: LineQuery,
    budget: ExcerptBudget,
) -> Result<OutputBlocks, ApiError> {
    let Some((journal, query)) = line_source(call, info, query)? else {
        return Ok(OutputBlocks::empty(info));
    };
    let page = read_page(&journal, info, query, budget.chars, move |rows| {
        render_whole(ExcerptInput::from_rows(rows), budget)
    });
    let page = page.await?;
    let notes = output_notes(info, &journal, &page.slice)?;
    Ok(OutputBlocks::from_page(page, notes))
}

/// All of the lines, whatever they cost.
pub(super) fn render_whole(material: ExcerptInput, budget: ExcerptBudget) -> Vec<String> {
    let budget = ExcerptBudget {
        chars: usize::MAX,
        ..budget
    };
    excerpt(material, budget).blocks
}

/// The source of an execution's lines, and the state of its last one; none where there are none.
fn line_source(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    query: LineQuery,
) -> Result<Option<(Journal, LineQuery)>, ApiError> {
    let unfinished = unfinished_mode(info);
    let query = LineQuery {
        unfinished,
        ..query
    };
    Ok(open_journal(call, info)?.map(|journal| (journal, query)))
}

/// The journal of an execution; none where nothing was printed, or where a wait was over before the
/// process was spawned.
fn open_journal(call: ToolCall<'_>, info: &ExecutionInfo) -> Result<Option<Journal>, ApiError> {
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

impl OutputBlocks {
    fn empty(info: &ExecutionInfo) -> Self {
        Self {
            next: info.cursor(),
            ..Self::default()
        }
    }

    /// From lines of both ends, rendered.
    pub(super) fn from_slice(
        slice: RowSlice,
        notes: Vec<String>,
        render: impl FnOnce(ExcerptInput) -> Excerpt,
    ) -> Self {
        Self {
            next: slice.next,
            notes,
            lines_left: 0,
            excerpt: render(slice.into_excerpt_input()),
        }
    }

    /// From lines that follow a position.
    pub(super) fn from_page(page: TextPage, notes: Vec<String>) -> Self {
        let has_cut_line = page.slice.front.iter().any(|row| row.is_cut);
        Self {
            next: page.next,
            lines_left: page.remaining_lines,
            notes,
            excerpt: Excerpt {
                blocks: page.blocks,
                has_cut_line,
                ..Excerpt::default()
            },
        }
    }

    /// Takes the text; each stream has its own heading.
    pub(super) fn take_blocks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.excerpt.blocks)
    }

    /// Whether anything was omitted.
    pub(super) const fn is_cut(&self) -> bool {
        self.excerpt.omitted.is_some() || self.lines_left > 0
    }

    /// The note on how to read a line of which a part is not shown.
    pub(super) fn cut_line_note(&self, call: ToolCall<'_>, info: &ExecutionInfo) -> Option<String> {
        self.excerpt.has_cut_line.then(|| cut_line_note(call, info))
    }

    /// Adds the omissions as machine-readable fields.
    pub(super) fn add_fields(&self, fields: &mut Map<String, Value>) {
        for (name, omitted) in [
            ("stdout", self.excerpt.output_omitted),
            ("stderr", self.excerpt.errors_omitted),
        ] {
            if let Some(omitted) = omitted {
                fields.insert(format!("{name}_omitted"), omitted_fields(omitted));
            }
        }
        if self.lines_left > 0 {
            fields.insert("lines_left".to_owned(), self.lines_left.into());
        }
    }
}

/// How to read a line of which a part is not shown.
pub(super) fn cut_line_note(call: ToolCall<'_>, info: &ExecutionInfo) -> String {
    let id = info.id.short();
    if call.client_context.tools.offers("process") {
        format!("a line is cut: process output of {id} with raw true has all of it")
    } else {
        format!("a line is cut: `ostler logs --raw {id}` has all of it")
    }
}

/// The omissions as machine-readable fields.
pub(super) fn omitted_fields(omitted: OmittedLines) -> Value {
    let cursor = Cursor {
        offset: omitted.offset,
        event: 0,
    };
    json!({"lines": omitted.lines, "bytes": omitted.bytes, "cursor": cursor})
}

/// Notes about the output itself: missing parts, and how it is rendered.
///
/// # Errors
/// When the files cannot be read.
pub(super) fn output_notes(
    info: &ExecutionInfo,
    journal: &Journal,
    slice: &RowSlice,
) -> Result<Vec<String>, ReadError> {
    let mut notes: Vec<String> = slice.gap.iter().map(|gap| gap_note(info, *gap)).collect();
    if let Some((from, to)) = slice.offset_range() {
        let lost = lost_bytes(|| Ok::<_, ReadError>(info.clone()), journal, from..to, &[])?;
        if lost > 0 {
            notes.push(format!(
                "{lost} bytes of output between these lines were lost"
            ));
        }
    }
    let tail = lost_tail(info, journal)?;
    if let Some(gap) = tail.filter(|gap| gap.from <= slice.next.offset && slice.damaged.is_none()) {
        let lost = info.lost_bytes(gap.from, gap.to);
        notes.push(format!("{lost} bytes at the end of the output were lost"));
    }
    add_display_notes(info, slice, &mut notes);
    Ok(notes)
}

/// The note that output is gone, and whether it was dropped or lost.
pub(super) fn gap_note(info: &ExecutionInfo, gap: Gap) -> String {
    let bytes = gap.to.saturating_sub(gap.from);
    match info.lost_bytes(gap.from, gap.to) {
        0 => format!("{bytes} bytes of earlier output are gone (cleared or trimmed)"),
        lost if lost == bytes => format!("{bytes} bytes of earlier output were lost"),
        lost => format!(
            "{bytes} bytes of earlier output are gone: {lost} of them were lost, the others \
             cleared or trimmed"
        ),
    }
}

fn add_display_notes(info: &ExecutionInfo, slice: &RowSlice, notes: &mut Vec<String>) {
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
        let id = info.id.short();
        notes.push(format!(
            "`ostler logs --raw {id}` gives the bytes of binary output"
        ));
    }
    let overwritten = slice.overwritten_lines();
    if overwritten > 0 {
        notes.push(format!(
            "{overwritten} lines that redraws overwrote are shown in their last state"
        ));
    }
}
