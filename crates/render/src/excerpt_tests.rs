use proptest::prelude::*;

use super::*;
use crate::HiddenLines;
use crate::cost::elide_middle;
use crate::sample::sample_rows;

fn numbered(count: usize) -> Vec<OutputRow> {
    let texts: Vec<String> = (1..=count).map(|n| format!("line {n}")).collect();
    sample_rows(&texts)
}

fn whole(rows: Vec<OutputRow>) -> ExcerptInput {
    ExcerptInput::from_rows(rows)
}

fn with_hidden(front: Vec<OutputRow>, hidden: HiddenLines, back: Vec<OutputRow>) -> ExcerptInput {
    let front = front.into_iter().map(ExcerptPiece::Row);
    let back = back.into_iter().map(ExcerptPiece::Row);
    ExcerptInput {
        pieces: front
            .chain([ExcerptPiece::Hidden(hidden)])
            .chain(back)
            .collect(),
        ..ExcerptInput::default()
    }
}

fn budget(chars: usize, block_lines: usize) -> ExcerptBudget {
    ExcerptBudget::new(chars, block_lines)
}

#[test]
fn what_fits_is_shown_whole() {
    let shown = excerpt(whole(numbered(3)), budget(2_000, 500));
    assert_eq!(shown.blocks, ["line 1\nline 2\nline 3"]);
    assert_eq!(shown.omitted, None);
}

#[test]
fn blocks_hold_at_most_their_lines() {
    let shown = excerpt(whole(numbered(5)), budget(2_000, 2));
    assert_eq!(shown.blocks, ["line 1\nline 2", "line 3\nline 4", "line 5"]);
}

#[test]
fn the_budget_counts_at_below_and_above() {
    let all = numbered(100);
    let price = LineCost::new(500);
    let exact = all.iter().map(|row| price.of_row(row)).sum();
    assert!(
        excerpt(whole(all.clone()), budget(exact, 500))
            .omitted
            .is_none()
    );
    assert!(
        excerpt(whole(all.clone()), budget(exact + 1, 500))
            .omitted
            .is_none()
    );
    assert!(
        excerpt(whole(all), budget(exact - 1, 500))
            .omitted
            .is_some()
    );
}

#[test]
fn last_lines_are_favoured_and_the_middle_is_counted() {
    let shown = excerpt(whole(numbered(1_000)), budget(700, 500));
    insta::assert_snapshot!(shown.blocks.join("\n=====\n"));
}

#[test]
fn hidden_lines_are_counted_in() {
    let hidden = HiddenLines {
        lines: 1_000_000,
        bytes: Some(5_000_000),
        offset: 4_096,
        is_stderr: false,
    };
    let shown = excerpt(
        with_hidden(numbered(2), hidden, numbered(3)),
        budget(2_000, 500),
    );
    let omitted = shown.omitted.unwrap();
    assert_eq!(
        (omitted.lines, omitted.bytes, omitted.offset),
        (1_000_000, Some(5_000_000), 4_096)
    );
    insta::assert_snapshot!(shown.blocks[0]);
}

#[test]
fn a_long_line_is_cut_in_its_middle_and_its_length_named() {
    let long = format!("begin{}end", "x".repeat(50_000));
    let shown = excerpt(whole(sample_rows(&[long])), budget(2_000, 500));
    let text = &shown.blocks[0];
    assert!(
        text.starts_with("beginxxx") && text.ends_with("xxxend"),
        "{text}"
    );
    assert!(
        text.contains("[… 50,008 characters in this line …]"),
        "{text}"
    );
    assert_eq!(shown.omitted, None);
}

#[test]
fn a_long_line_that_fits_is_not_cut() {
    let long = "x".repeat(11_000);
    let shown = excerpt(
        whole(sample_rows(std::slice::from_ref(&long))),
        budget(REPLY_CHARS, 500),
    );
    assert_eq!(shown.blocks, [long]);
}

/// A log of `total` lines with failure lines at the given indices.
fn log(total: usize, faults: &[(usize, &str)]) -> Vec<OutputRow> {
    let line = |n: usize| {
        let fault = faults.iter().find(|(place, _)| *place == n);
        fault.map_or_else(
            || format!("building thing number {n}"),
            |(_, text)| (*text).to_owned(),
        )
    };
    let texts: Vec<String> = (0..total).map(line).collect();
    sample_rows(&texts)
}

#[test]
fn what_failed_in_the_middle_is_shown_with_its_neighbours() {
    let faults = [
        (4_000, "error[E0308]: mismatched types"),
        (4_001, "  --> src/deep/file.rs:10:5"),
        (4_002, "   |"),
        (4_003, "10 |     wrong()"),
        (4_004, "   |     ^^^^^^^ expected `u8`, found `()`"),
        (4_005, ""),
        (9_000, "thread 'it' panicked at src/lib.rs:3:9:"),
        (9_001, "assertion failed: left == right"),
    ];
    let shown = excerpt(whole(log(12_000, &faults)), budget(2_000, 500));
    insta::assert_snapshot!(shown.blocks.join("\n=====\n"));
}

#[test]
fn the_same_error_again_and_again_is_reported_once_and_counted() {
    let text = "error: cannot reach the database";
    let faults: Vec<(usize, &str)> = (500..4_500).step_by(2).map(|n| (n, text)).collect();
    let mut faults = faults;
    faults.push((4_700, "error: quite another thing"));
    let shown = excerpt(whole(log(6_000, &faults)), budget(3_000, 500));
    let all = shown.blocks.join("\n");
    assert!(all.contains("error: quite another thing"), "{all}");
    assert!(all.contains("more like this …]"), "{all}");
}

#[test]
fn the_first_failure_is_never_lost_among_many() {
    let texts: Vec<String> = (0..3_000)
        .map(|n| format!("error: item {n} is bad"))
        .collect();
    let mut faults: Vec<(usize, &str)> = (2_000..5_000)
        .zip(texts.iter().map(String::as_str))
        .collect();
    faults.push((1_500, "error: the root of all evil"));
    let shown = excerpt(whole(log(8_000, &faults)), budget(2_000, 500));
    let all = shown.blocks.join("\n");
    assert!(all.contains("the root of all evil"), "{all}");
    assert!(all.contains("item 0 is bad"), "{all}");
}

/// Markers of an excerpt: lines, bytes and cursor of each.
fn markers(lines: &[&str]) -> Vec<(u64, u64, u64)> {
    let shape =
        regex::Regex::new(r"^\[… ([\d,]+) lines? \(([\d,]+) bytes\) omitted; cursor (\d+)\.0 …\]$");
    let shape = shape.unwrap();
    let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    let found = lines.iter().filter_map(|line| shape.captures(line));
    found
        .map(|all| (number(&all[1]), number(&all[2]), number(&all[3])))
        .collect()
}

/// How many equal lines a line represents.
fn repeats(line: &str) -> u64 {
    let suffix = line.rsplit_once("[× ").map(|(_, suffix)| suffix);
    let count = suffix.map(|suffix| suffix.trim_end_matches(|c: char| !c.is_ascii_digit()));
    count.map_or(1, |count| count.replace(',', "").parse().unwrap())
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z é你🦀]{0,90}",
        1 => "x{500,4000}",
        1 => "error: [a-z]{1,9}",
        1 => Just("E       assert 1 == 2".to_owned()),
        1 => Just("Traceback (most recent call last):".to_owned()),
        1 => "warning: [a-z ]{0,40}",
        1 => Just(String::new()),
    ]
}

/// Lines, some of them replaced by hidden ranges.
fn pieces() -> impl Strategy<Value = Vec<ExcerptPiece>> {
    let hidden = prop::option::weighted(0.03, (1_u64..1_000_000, 0_u64..1_000_000_000));
    prop::collection::vec((line(), hidden), 1..160).prop_map(|lines| {
        let mut offset = 0;
        let mut pieces = Vec::new();
        let last = lines.len() - 1;
        for (place, (text, hidden)) in lines.into_iter().enumerate() {
            let inside = place > 0 && place < last;
            if let Some((lines, bytes)) = hidden.filter(|_| inside) {
                pieces.push(ExcerptPiece::Hidden(HiddenLines {
                    lines,
                    bytes: Some(bytes),
                    offset,
                    is_stderr: false,
                }));
                offset += bytes;
            }
            let mut row = sample_rows(&[text]).remove(0);
            row.offset = offset;
            offset += row.bytes;
            pieces.push(ExcerptPiece::Row(row));
        }
        pieces
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn never_over_budget_counts_exact_order_kept(
        pieces in pieces(),
        chars in 256_usize..8_000,
        block_lines in 1_usize..40,
    ) {
        let material = ExcerptInput { pieces: pieces.clone(), ..ExcerptInput::default() };
        let shown = excerpt(material, budget(chars, block_lines));

        let spent: usize = shown.blocks.iter().map(|b| b.chars().count() + BLOCK_CHARS).sum();
        prop_assert!(spent <= chars + BLOCK_CHARS, "{spent} of {chars}");
        for block in &shown.blocks {
            prop_assert!(block.split('\n').count() <= block_lines);
        }

        // The omissions are exact: lines and bytes add up, and each starts at its offset.
        let lines: Vec<&str> = shown.blocks.iter().flat_map(|b| b.split('\n')).collect();
        let markers = markers(&lines);
        let marked = markers.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let total = shown.omitted.map_or((0, 0), |all| (all.lines, all.bytes.unwrap()));
        prop_assert_eq!(marked, total);
        let all_lines: u64 = pieces.iter().map(|p| p.omitted().lines).sum();
        let repeated: u64 = lines.iter().map(|line| repeats(line) - 1).sum();
        let shown_lines = (lines.len() - markers.len()) as u64 + repeated;
        prop_assert_eq!(shown_lines + marked.0, all_lines);
        let cursors: Vec<u64> = markers.iter().map(|one| one.2).collect();
        prop_assert!(cursors.windows(2).all(|two| two[0] <= two[1]), "{cursors:?}");

        // The lines shown are those of the input, in order, without duplicates; the ends are kept.
        let rows: Vec<&OutputRow> = pieces.iter().filter_map(ExcerptPiece::row).collect();
        let mut left = rows.iter();
        for line in lines.iter().filter(|line| self::markers(&[line]).is_empty()) {
            let line = line.split(" [× ").next().unwrap_or_default();
            let line = if line.starts_with("[× ") { "" } else { line };
            // A tiny budget leaves less of a line's beginning.
            let begin = line.split(" [… ").next().unwrap_or_default();
            let begin = begin.split("[… ").next().unwrap_or_default();
            let begin: String = begin.chars().take(20).collect();
            let is_it = |row: &&&OutputRow| row.text.starts_with(&begin);
            prop_assert!(left.by_ref().find(is_it).is_some(), "{line:?} is not in order");
        }
        let begins = |line: &str, row: &OutputRow| {
            line.chars().take(20).eq(row.text.chars().take(20))
        };
        if chars >= 512 {
            prop_assert!(begins(lines[0], rows[0]), "{:?}", lines[0]);
            prop_assert!(begins(lines[lines.len() - 1], rows[rows.len() - 1]));
        }
    }

    #[test]
    fn clamping_never_lengthens_nor_splits(text in "[a-zé你🦀]{0,3000}", limit in 128_usize..2_000) {
        let mut cut = text.clone();
        elide_middle(&mut cut, limit);
        prop_assert!(cut.chars().count() <= text.chars().count().max(limit));
        if text.chars().count() <= limit {
            prop_assert_eq!(cut, text);
        } else {
            prop_assert!(cut.chars().count() <= limit);
        }
    }
}
