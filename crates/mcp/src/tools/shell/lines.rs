//! The first or the last lines of one stream, as exact texts within the budget of one answer.

use ostler_engine::ExecutionInfo;
use ostler_journal::{LineQuery, StreamSet};
use ostler_model::{Cursor, ErrorCode, StreamName};
use ostler_render::{OutputRow, REPLY_CHARS};

use crate::output::{cut_line_note, output_notes};
use crate::tool_call::ToolCall;
use ostler_interface::error::ApiError;
use ostler_interface::output_reader::{read_slice, unfinished_mode};

/// The most characters of all lines of an answer, as encoded in JSON.
const CONTENT_CHARS: usize = REPLY_CHARS - 2_000;
/// The most bytes read of one line: a hundred lines are read at once.
const LINE_BYTES: u64 = 2 * 1024;
/// Reserved for the note in the middle of a cut line.
const NOTE_CHARS: usize = 48;
/// Characters JSON adds to one line: quotes and a comma.
const QUOTES_CHARS: usize = 3;

/// Which lines to read.
#[derive(Debug, Clone, Copy)]
pub(super) enum LineEnd {
    /// This many lines from the beginning.
    Head(u64),
    /// This many lines from the end.
    Tail(u64),
    /// This many lines from a position on.
    After(Cursor, u64),
}

/// Lines of a stream.
#[derive(Debug)]
pub(super) struct LinesRead {
    /// Their texts, without escape sequences.
    pub(super) lines: Vec<String>,
    /// Notes about the output itself.
    pub(super) notes: Vec<String>,
    /// The position after them.
    pub(super) next: Cursor,
}

/// Reads lines of one stream.
pub(super) async fn read_lines(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    stream: StreamName,
    end: LineEnd,
) -> Result<LinesRead, ApiError> {
    let (from, head, tail) = match end {
        LineEnd::Head(lines) => (None, Some(lines), None),
        LineEnd::Tail(lines) => (None, None, Some(lines)),
        LineEnd::After(cursor, lines) => (Some(cursor), Some(lines), None),
    };
    let query = LineQuery {
        from,
        streams: StreamSet::only(stream),
        head,
        tail,
        unfinished: unfinished_mode(info),
        max_line_bytes: LINE_BYTES,
        ..LineQuery::default()
    };
    let journal = call.engine.journal(call.caller, &info.id.short())?;
    let slice = read_slice(&journal, info, query)
        .await
        .map_err(read_failure)?;
    let mut notes = output_notes(info, &journal, &slice).map_err(read_failure)?;
    let next = slice.next;
    let (lines, is_cut) = fit_rows(slice.front, CONTENT_CHARS);
    notes.extend(is_cut.then(|| cut_line_note(call, info)));
    Ok(LinesRead { lines, notes, next })
}

/// Words an error with the fixed error codes of these tools.
fn read_failure(error: ostler_journal::ReadError) -> ApiError {
    let message = format!("Failed to read output: {error}");
    ApiError::new(ErrorCode::OutputRetrieval, message)
}

/// The text of each row; where they exceed the budget, the longest are cut in the middle. Also
/// whether a row is cut, here or before.
fn fit_rows(rows: Vec<OutputRow>, budget: usize) -> (Vec<String>, bool) {
    let costs: Vec<usize> = rows.iter().map(|row| json_cost(&row.text)).collect();
    let limit = cut_limit(costs, budget);
    let is_cut = |row: &OutputRow| row.is_cut || json_cost(&row.text) > limit;
    let has_cut_row = rows.iter().any(is_cut);
    let texts = rows.into_iter().map(|row| cut_middle(row, limit));
    (texts.collect(), has_cut_row)
}

/// The common length of the longest lines, so that all fit.
fn cut_limit(mut costs: Vec<usize>, budget: usize) -> usize {
    costs.sort_unstable();
    let mut remaining = budget;
    let mut longer_count = costs.len();
    for cost in costs {
        let share = remaining / longer_count;
        if cost > share {
            return share;
        }
        remaining -= cost;
        longer_count -= 1;
    }
    usize::MAX
}

/// The length of a line in JSON.
fn json_cost(text: &str) -> usize {
    text.chars().map(escaped_cost).sum::<usize>() + QUOTES_CHARS
}

const fn escaped_cost(c: char) -> usize {
    match c {
        '"' | '\\' | '\t' => 2,
        '\0'..='\x1f' => 6,
        _ => 1,
    }
}

/// Cuts a line that is longer than `limit` in its middle and states its length.
fn cut_middle(row: OutputRow, limit: usize) -> String {
    let text = row.text;
    if json_cost(&text) <= limit {
        return text;
    }
    let room = limit.saturating_sub(NOTE_CHARS + QUOTES_CHARS);
    let (head, tail) = (room - room / 4, room / 4);
    let begin = count_fitting(text.chars(), head);
    let skipped = text.chars().count() - count_fitting(text.chars().rev(), tail);
    let begin: String = text.chars().take(begin).collect();
    let end: String = text.chars().skip(skipped).collect();
    format!("{begin}[… a line of {} bytes …]{end}", row.bytes)
}

/// How many of these characters fit into `budget`.
fn count_fitting(chars: impl Iterator<Item = char>, budget: usize) -> usize {
    let mut remaining = budget;
    let fits = |c: &char| match remaining.checked_sub(escaped_cost(*c)) {
        Some(rest) => {
            remaining = rest;
            true
        }
        None => false,
    };
    chars.take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use ostler_model::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn rows(texts: &[String]) -> Vec<OutputRow> {
        let row = |text: &String| OutputRow {
            at: Timestamp::UNIX_EPOCH,
            stream: StreamName::Stdout,
            offset: 0,
            lines: 1,
            repeats: 1,
            binary: false,
            is_cut: false,
            bytes: text.len() as u64 + 1,
            text: text.clone(),
        };
        texts.iter().map(row).collect()
    }

    #[test]
    fn what_fits_is_whole() {
        let texts = vec!["x".repeat(500), "short".to_owned()];
        let room = 500 + 5 + 2 * QUOTES_CHARS;
        assert_eq!(fit_rows(rows(&texts), room), (texts.clone(), false));
        let (shown, has_cut_row) = fit_rows(rows(&texts), room - 1);
        assert!(has_cut_row && shown != texts);
    }

    #[test]
    fn the_longest_are_cut_first_and_their_length_is_named() {
        let texts = vec!["x".repeat(50_000), "short".to_owned()];
        let (shown, _) = fit_rows(rows(&texts), 1_000);
        assert_eq!(shown[1], "short");
        assert!(
            shown[0].contains("a line of 50001 bytes …]x"),
            "{}",
            shown[0]
        );
        assert!(shown[0].len() <= 1_000);
    }

    proptest! {
        #[test]
        fn as_many_lines_as_there_are_and_never_over_budget(
            texts in prop::collection::vec("[a-z\"\\\\\té你🦀]{0,300}|x{1500,2200}", 0..=100),
            room in 10_000_usize..20_000,
        ) {
            let (shown, _) = fit_rows(rows(&texts), room);
            prop_assert_eq!(shown.len(), texts.len());
            let chars = serde_json::to_string(&shown).unwrap().chars().count();
            prop_assert!(chars <= room + 2, "{chars} of {room}");
        }
    }
}
