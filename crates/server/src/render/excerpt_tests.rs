use ostler_model::{StreamName, Timestamp};
use proptest::prelude::*;

use super::*;

fn rows(texts: &[String]) -> Vec<Row> {
    let mut offset = 0;
    let mut rows = Vec::new();
    for text in texts {
        let bytes = text.len() as u64 + 1;
        rows.push(Row {
            at: Timestamp::UNIX_EPOCH,
            stream: StreamName::Stdout,
            offset,
            bytes,
            text: text.clone(),
        });
        offset += bytes;
    }
    rows
}

fn numbered(count: usize) -> Vec<Row> {
    let texts: Vec<String> = (1..=count).map(|n| format!("line {n}")).collect();
    rows(&texts)
}

fn budget(chars: usize, block_lines: usize) -> Budget {
    Budget { chars, block_lines }
}

#[test]
fn what_fits_is_shown_whole() {
    let shown = excerpt(numbered(3), None, Vec::new(), budget(2_000, 500));
    assert_eq!(shown.blocks, ["line 1\nline 2\nline 3"]);
    assert_eq!(shown.omitted, None);
}

#[test]
fn blocks_hold_at_most_their_lines() {
    let shown = excerpt(numbered(5), None, Vec::new(), budget(2_000, 2));
    assert_eq!(shown.blocks, ["line 1\nline 2", "line 3\nline 4", "line 5"]);
}

#[test]
fn the_budget_counts_at_below_and_above() {
    let all = numbered(100);
    let exact = cost(&all, 500);
    assert!(
        excerpt(all.clone(), None, Vec::new(), budget(exact, 500))
            .omitted
            .is_none()
    );
    assert!(
        excerpt(all.clone(), None, Vec::new(), budget(exact + 1, 500))
            .omitted
            .is_none()
    );
    assert!(
        excerpt(all, None, Vec::new(), budget(exact - 1, 500))
            .omitted
            .is_some()
    );
}

#[test]
fn last_lines_are_favoured_and_the_middle_is_counted() {
    let shown = excerpt(numbered(1_000), None, Vec::new(), budget(700, 500));
    insta::assert_snapshot!(shown.blocks.join("\n=====\n"));
}

#[test]
fn hidden_lines_are_counted_in() {
    let hidden = Hidden {
        lines: 1_000_000,
        bytes: Some(5_000_000),
        offset: 4_096,
    };
    let shown = excerpt(numbered(2), Some(hidden), numbered(3), budget(2_000, 500));
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
    let shown = excerpt(rows(&[long]), None, Vec::new(), budget(2_000, 500));
    let text = &shown.blocks[0];
    assert!(
        text.starts_with("beginxxx") && text.ends_with("xxxend"),
        "{text}"
    );
    assert!(text.contains("of this line's 50,008 characters"), "{text}");
    assert_eq!(shown.omitted, None);
}

#[test]
fn a_long_line_that_fits_is_not_cut() {
    let long = "x".repeat(15_000);
    let shown = excerpt(
        rows(std::slice::from_ref(&long)),
        None,
        Vec::new(),
        budget(REPLY_CHARS, 500),
    );
    assert_eq!(shown.blocks, [long]);
}

proptest! {
    #[test]
    fn never_over_budget_and_counts_exact(
        texts in prop::collection::vec("[a-z é你🦀]{0,90}|x{500,4000}", 0..120),
        chars in 512_usize..6_000,
        block_lines in 1_usize..40,
        hidden in prop::option::of((1_u64..1_000_000, 0_u64..1_000_000_000)),
        split in 0_usize..120,
    ) {
        let all = rows(&texts);
        let at = if hidden.is_some() { split.min(all.len()) } else { all.len() };
        let front = all[..at].to_vec();
        let back = all[at..].to_vec();
        let hidden = hidden.map(|(lines, bytes)| Hidden { lines, bytes: Some(bytes), offset: 7 });
        let shown = excerpt(front, hidden, back, budget(chars, block_lines));

        let spent: usize = shown.blocks.iter().map(|b| b.chars().count() + BLOCK_CHARS).sum();
        prop_assert!(spent <= chars + BLOCK_CHARS, "{spent} of {chars}");

        let lines: Vec<&str> = shown.blocks.iter().flat_map(|b| b.split('\n')).collect();
        let kept = lines.len() - usize::from(shown.omitted.is_some());
        let told = shown.omitted.map_or(0, |omitted| omitted.lines);
        prop_assert_eq!(kept as u64 + told, all.len() as u64 + hidden.map_or(0, |h| h.lines));

        let head = lines.iter().take_while(|l| !l.contains(" omitted; read on")).count().min(kept);
        let tail = kept - head;
        let kept_bytes: u64 = all[..head].iter().chain(&all[all.len() - tail..]).map(|r| r.bytes).sum();
        let all_bytes: u64 = all.iter().map(|r| r.bytes).sum();
        let told = shown.omitted.map_or(0, |omitted| omitted.bytes.unwrap());
        let hidden_bytes = hidden.and_then(|h| h.bytes).unwrap_or(0);
        prop_assert_eq!(kept_bytes + told, all_bytes + hidden_bytes);
        for block in &shown.blocks {
            prop_assert!(block.split('\n').count() <= block_lines + 1);
        }
    }

    #[test]
    fn clamping_never_lengthens_nor_splits(text in "[a-zé你🦀]{0,3000}", limit in 128_usize..2_000) {
        let mut cut = text.clone();
        clamp(&mut cut, limit);
        prop_assert!(cut.chars().count() <= text.chars().count().max(limit));
        if text.chars().count() <= limit {
            prop_assert_eq!(cut, text);
        } else {
            prop_assert!(cut.chars().count() <= limit);
        }
    }
}
