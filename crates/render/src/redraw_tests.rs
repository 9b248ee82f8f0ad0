use ostler_model::Timestamp;
use proptest::prelude::*;

use super::*;

fn folded<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<OutputRow> {
    let mut fold = RedrawFolder::default();
    let mut offset = 0;
    for text in lines {
        let bytes = text.len() as u64 + 1;
        fold.push_line(OutputRow {
            at: Timestamp::UNIX_EPOCH,
            stream: StreamName::Stdout,
            offset,
            lines: 1,
            repeats: 1,
            binary: false,
            is_cut: false,
            bytes,
            text: text.to_owned(),
        });
        offset += bytes;
    }
    fold.finish()
}

fn texts(rows: &[OutputRow]) -> Vec<&str> {
    rows.iter().map(|row| row.text.as_str()).collect()
}

#[test]
fn plain_and_coloured_lines_stay() {
    let rows = folded(["one", "", "\x1b[32mtwo\x1b[0m", "10%\r20%"]);
    assert_eq!(texts(&rows), ["one", "", "two", "20%"]);
    assert!(rows.iter().all(|row| row.lines == 1));
}

#[test]
fn bars_of_several_rows_leave_their_last_state() {
    let mut lines = vec!["pulling".to_owned(), "a: 0%".to_owned(), "b: 0%".to_owned()];
    for n in 1..=10_000 {
        lines.push(format!("\x1b[2A\x1b[2K\ra: {}%", n / 100));
        lines.push(format!("\x1b[2K\rb: {}%", n / 200));
    }
    lines.push("done".to_owned());
    let rows = folded(lines.iter().map(String::as_str));
    assert_eq!(texts(&rows), ["pulling", "a: 100%", "b: 50%", "done"]);
    let sum: u64 = rows.iter().map(|row| row.lines).sum();
    assert_eq!(sum, 20_004);
}

#[test]
fn rows_that_were_erased_count_for_the_one_that_erased_them() {
    let rows = folded(["keep", "one", "two", "\x1b[2F\x1b[Jnow", "last"]);
    assert_eq!(texts(&rows), ["keep", "now", "last"]);
    assert_eq!(rows.iter().map(|row| row.lines).sum::<u64>(), 5);
}

#[test]
fn log_updates_that_go_up_line_by_line() {
    let erase = "\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[G";
    let second = format!("{erase}frame 2");
    let rows = folded(["frame 1", "spinner", second.as_str(), "spinner"]);
    assert_eq!(texts(&rows), ["frame 2", "spinner"]);
}

#[test]
fn a_screen_that_is_cleared_again_and_again_is_one_screen() {
    let mut lines = vec!["compiled".to_owned()];
    for n in 0..1_000 {
        lines.push(format!("\x1b[H\x1b[2Jround {n}"));
        lines.push(format!("load {n}"));
    }
    let rows = folded(lines.iter().map(String::as_str));
    assert_eq!(texts(&rows), ["compiled", "round 999", "load 999"]);
}

#[test]
fn a_bar_that_cleans_up_leaves_nothing() {
    let rows = folded(["one", "bar a", "bar b", "\x1b[2A\x1b[2K", "\x1b[2K\x1b[1A"]);
    assert_eq!(rows.iter().map(|row| row.lines).sum::<u64>(), 5);
    assert!(texts(&rows)[0] == "one" && rows.len() <= 3, "{rows:?}");
}

#[test]
fn streams_have_screens_of_their_own() {
    let mut fold = RedrawFolder::default();
    let row = |stream, text: &str| OutputRow {
        at: Timestamp::UNIX_EPOCH,
        stream,
        offset: 0,
        lines: 1,
        repeats: 1,
        binary: false,
        is_cut: false,
        bytes: 1,
        text: text.to_owned(),
    };
    fold.push_line(row(StreamName::Stdout, "out"));
    fold.push_line(row(StreamName::Stderr, "50%"));
    fold.push_line(row(StreamName::Stderr, "\x1b[A100%"));
    assert_eq!(texts(&fold.finish()), ["out", "100%"]);
}

proptest! {
    #[test]
    fn lines_and_bytes_add_up_and_nothing_controls_a_terminal(
        lines in prop::collection::vec(
            "([a-z]{0,5}|\x1b\\[[0-9]{0,2}[ABEFGHJK]|\r|\x08){0,6}",
            0..60,
        ),
    ) {
        let rows = folded(lines.iter().map(String::as_str));
        prop_assert_eq!(rows.iter().map(|row| row.lines).sum::<u64>(), lines.len() as u64);
        let bytes: u64 = lines.iter().map(|line| line.len() as u64 + 1).sum();
        prop_assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), bytes);
        for row in &rows {
            prop_assert!(!row.text.contains(|c: char| c.is_control() && c != '\t'));
        }
    }

    #[test]
    fn lines_without_movements_are_cleaned_one_by_one(
        lines in prop::collection::vec("([a-z ]{0,9}|\x1b\\[[0-9;]{0,4}[mKG]|\r|\x08){0,6}", 0..60),
    ) {
        let rows = folded(lines.iter().map(String::as_str));
        let cleaned: Vec<String> = lines.iter().map(|line| clean(line).into_owned()).collect();
        prop_assert_eq!(texts(&rows), cleaned);
    }
}
