//! Condenses repeated lines and binary output.

use super::binary::{LineContent, classify_content};
use super::cost::group_thousands;
use super::excerpt_piece::ExcerptPiece;
use super::row::OutputRow;

/// The number of equal consecutive lines from which on they are shown as one.
const EQUAL_LINES: u64 = 4;

/// The most bytes of a line between two binary ones that counts as binary regardless of content.
const ISLAND_BYTES: u64 = 8;

/// Marks binary rows; `sample_rows` are decoded but not cleaned yet. An ambiguous row is classified
/// as its neighbours in the same stream.
pub(super) fn mark_binary(rows: &mut [OutputRow]) {
    let contents: Vec<LineContent> = rows.iter().map(|row| classify_content(&row.text)).collect();
    if !contents.contains(&LineContent::Binary) {
        return;
    }
    let mut binary: Vec<bool> = contents
        .iter()
        .map(|it| *it == LineContent::Binary)
        .collect();
    let spread = |binary: &mut Vec<bool>, from: usize, to: usize| {
        let same = rows[from].stream == rows[to].stream;
        if binary[from] && same && contents[to] == LineContent::Ambiguous {
            binary[to] = true;
        }
    };
    (1..rows.len()).for_each(|index| spread(&mut binary, index - 1, index));
    (1..rows.len())
        .rev()
        .for_each(|index| spread(&mut binary, index, index - 1));
    for index in 1..rows.len().saturating_sub(1) {
        let enclosed = binary[index - 1] && binary[index + 1];
        let same = rows[index - 1].stream == rows[index].stream;
        if enclosed && same && rows[index].bytes <= ISLAND_BYTES {
            binary[index] = true;
        }
    }
    for (row, binary) in rows.iter_mut().zip(binary) {
        if binary {
            row.binary = true;
            row.text = binary_text(row.bytes);
        }
    }
}

/// The text shown for binary output.
fn binary_text(bytes: u64) -> String {
    format!("[binary, {} bytes]", group_thousands(bytes))
}

/// The pieces with each run of equal or binary rows as one row.
pub(super) fn condensed(pieces: Vec<ExcerptPiece>) -> Vec<ExcerptPiece> {
    let mut all: Vec<ExcerptPiece> = Vec::with_capacity(pieces.len());
    let mut pieces = pieces.into_iter().peekable();
    while let Some(piece) = pieces.next() {
        let ExcerptPiece::Row(first) = piece else {
            all.push(piece);
            continue;
        };
        let mut run = vec![first];
        while let Some(ExcerptPiece::Row(next)) =
            pieces.next_if(|next| next.row().is_some_and(|next| continues_run(&run[0], next)))
        {
            run.push(next);
        }
        all.extend(merge_run(run).into_iter().map(ExcerptPiece::Row));
    }
    all
}

fn continues_run(first: &OutputRow, next: &OutputRow) -> bool {
    first.stream == next.stream
        && first.binary == next.binary
        && (first.binary || first.text == next.text)
}

/// One row for a run, or its rows where they are few.
fn merge_run(mut run: Vec<OutputRow>) -> Vec<OutputRow> {
    let repeats: u64 = run.iter().map(|row| row.repeats).sum();
    if run.len() == 1 || (!run[0].binary && repeats < EQUAL_LINES) {
        return run;
    }
    let lines = run.iter().map(|row| row.lines).sum();
    let bytes = run.iter().map(|row| row.bytes).sum();
    run.truncate(1);
    for row in &mut run {
        (row.lines, row.bytes, row.repeats) = (lines, bytes, repeats);
        if row.binary {
            row.text = binary_text(bytes);
        }
    }
    run
}

impl OutputRow {
    /// The suffix with the number of repetitions, if there are many.
    pub(super) fn suffix(&self) -> String {
        match (self.repeats, self.text.is_empty()) {
            (1, _) => String::new(),
            _ if self.binary => String::new(),
            (repeats, true) => format!("[× {} empty lines]", group_thousands(repeats)),
            (repeats, false) => format!(" [× {}]", group_thousands(repeats)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::sample_rows;
    use super::*;

    fn shown(rows: Vec<OutputRow>) -> Vec<String> {
        let pieces = condensed(rows.into_iter().map(ExcerptPiece::Row).collect());
        let rows = pieces.iter().filter_map(ExcerptPiece::row);
        rows.map(|row| format!("{}{}", row.text, row.suffix()))
            .collect()
    }

    #[test]
    fn many_equal_lines_are_one_and_a_few_stay() {
        let mut texts = vec!["first"];
        texts.extend(vec!["same"; 3_000]);
        texts.extend(["}", "}", "}", "", "", "", ""]);
        let shown = shown(sample_rows(&texts));
        let wanted = [
            "first",
            "same [× 3,000]",
            "}",
            "}",
            "}",
            "[× 4 empty lines]",
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn lines_and_bytes_add_up_and_condensing_again_changes_nothing() {
        let pieces: Vec<ExcerptPiece> = sample_rows(&["a"; 10])
            .into_iter()
            .map(ExcerptPiece::Row)
            .collect();
        let once = condensed(pieces);
        let row = once[0].row().unwrap();
        assert_eq!((row.lines, row.bytes, row.repeats), (10, 20, 10));
        assert_eq!(condensed(once.clone()), once);
    }

    #[test]
    fn a_run_of_binary_output_is_one_row_and_text_around_it_stays() {
        let mut rows = sample_rows(&["before", "\0\x01\x02", "\u{fffd}", "", "\0\0", "after"]);
        mark_binary(&mut rows);
        assert_eq!(shown(rows), ["before", "[binary, 12 bytes]", "after"]);
    }
}
