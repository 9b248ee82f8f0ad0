//! A screen as text: what an agent sees of a terminal, within the budget of a reply (F3).

use ostler_terminal::View;
use serde_json::{Value, json};

use crate::render::clamped;

/// The most characters of a title.
const TITLE_CHARS: usize = 80;
/// Rows are not cut shorter than this; rather, rows far from the cursor are left out.
const MIN_ROW_CHARS: usize = 40;

/// What is shown of a screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Drawn {
    /// Its rows, blank ones at the end left out.
    pub(super) rows: Vec<String>,
    /// What is not shown, in words.
    pub(super) cut: Option<String>,
}

impl Drawn {
    /// As one text.
    pub(super) fn text(&self) -> String {
        if self.rows.is_empty() {
            return "(the screen is blank)".to_owned();
        }
        self.rows.join("\n")
    }
}

/// The rows of a screen in at most so many characters: all of them where they fit, else each
/// cut at its end, else only those around the cursor.
pub(super) fn draw(view: &View, chars: usize) -> Drawn {
    let used = view.rows.iter().rposition(|row| !row.trim().is_empty());
    let rows = &view.rows[..used.map_or(0, |last| last + 1)];
    let lengths: Vec<usize> = rows.iter().map(|row| row.chars().count()).collect();
    let fits = |width: usize| price(&lengths, width) <= chars;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    if fits(longest) {
        return Drawn {
            rows: rows.to_vec(),
            cut: None,
        };
    }
    if !fits(MIN_ROW_CHARS) {
        return around(rows, usize::from(view.cursor.row), chars);
    }
    // The widest that fits; cutting at `longest` does not.
    let (mut width, mut beyond) = (MIN_ROW_CHARS, longest);
    while beyond - width > 1 {
        let middle = width.midpoint(beyond);
        if fits(middle) {
            width = middle;
        } else {
            beyond = middle;
        }
    }
    Drawn {
        rows: rows.iter().map(|row| clamped(row, width)).collect(),
        cut: Some(format!("rows longer than {width} characters end in … here")),
    }
}

/// What rows cost that are cut at this width, with their line ends and marks.
fn price(lengths: &[usize], width: usize) -> usize {
    lengths
        .iter()
        .map(|length| length.min(&(width + 1)) + 1)
        .sum()
}

/// The rows around the cursor, as many as fit, each cut.
fn around(rows: &[String], cursor: usize, chars: usize) -> Drawn {
    let fitting = (chars / (MIN_ROW_CHARS + 2)).clamp(1, rows.len());
    let first = cursor.saturating_sub(fitting / 2).min(rows.len() - fitting);
    let shown = &rows[first..first + fitting];
    let (above, below) = (first, rows.len() - first - fitting);
    Drawn {
        rows: shown
            .iter()
            .map(|row| clamped(row, MIN_ROW_CHARS))
            .collect(),
        cut: Some(format!(
            "{above} rows above and {below} below these are not shown, and rows end in … after \
             {MIN_ROW_CHARS} characters"
        )),
    }
}

/// `80x24, cursor row 3 column 13, alternate screen, title "vim"`; rows and columns from 1, as
/// people count them.
pub(super) fn facts(view: &View) -> String {
    let cursor = view.cursor;
    let mut facts = format!(
        "{}x{}, cursor row {} column {}",
        view.size.cols,
        view.size.rows,
        cursor.row + 1,
        cursor.col + 1
    );
    if !cursor.visible {
        facts.push_str(" (hidden)");
    }
    if view.alternate {
        facts.push_str(", alternate screen");
    }
    let title = title(view);
    if !title.is_empty() {
        facts.push_str(&format!(", title \"{title}\""));
    }
    if !view.exact {
        facts.push_str(", inexact: output was dropped before it was drawn");
    }
    facts
}

/// The title, in one short line.
pub(super) fn title(view: &View) -> String {
    let title = view.title.replace(char::is_control, " ");
    clamped(title.trim(), TITLE_CHARS)
}

/// The same for programs: a [`View`], its rows as they are shown.
pub(super) fn fields(view: &View, drawn: &Drawn) -> Value {
    json!({
        "size": view.size,
        "cursor": view.cursor,
        "title": title(view),
        "alternate": view.alternate,
        "rows": drawn.rows,
        "offset": view.offset,
        "exact": view.exact,
        "cut": drawn.cut.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use ostler_model::TermSize;
    use ostler_terminal::{CursorAt, Modes};
    use proptest::prelude::*;

    use super::*;

    fn view(rows: Vec<String>, row: u16) -> View {
        View {
            size: TermSize {
                cols: 80,
                rows: u16::try_from(rows.len()).unwrap_or(u16::MAX),
            },
            rows,
            cursor: CursorAt {
                col: 4,
                row,
                visible: true,
            },
            title: String::new(),
            alternate: false,
            modes: Modes::default(),
            offset: 7,
            exact: true,
        }
    }

    #[test]
    fn rows_that_fit_are_all_there_and_blank_ones_at_the_end_are_not() {
        let rows = ["$ ls", "", "a  b", "", " "].map(str::to_owned);
        let drawn = draw(&view(rows.to_vec(), 3), 1_000);
        assert_eq!(drawn.text(), "$ ls\n\na  b");
        assert_eq!(drawn.cut, None);
        assert_eq!(
            draw(&view(Vec::new(), 0), 10).text(),
            "(the screen is blank)"
        );
    }

    #[test]
    fn a_wide_screen_is_cut_at_its_right() {
        let rows = vec!["x".repeat(300); 100];
        let drawn = draw(&view(rows, 3), 19_000);
        assert_eq!(drawn.rows.len(), 100);
        assert!(drawn.text().chars().count() <= 19_000);
        assert!(drawn.rows[0].ends_with('…'));
        assert!(drawn.rows[0].chars().count() > 180);
        assert!(drawn.cut.is_some());
    }

    #[test]
    fn what_is_known_stands_in_one_line() {
        let mut it = view(vec!["a".to_owned()], 0);
        it.title = "vim\u{7} a".to_owned();
        it.alternate = true;
        let told = "80x1, cursor row 1 column 5, alternate screen, title \"vim  a\"";
        assert_eq!(facts(&it), told);
    }

    proptest! {
        #[test]
        fn a_screen_keeps_its_budget_and_its_cursor(
            lengths in prop::collection::vec(0_usize..400, 1..600),
            row in 0_u16..600,
            chars in 500_usize..20_000,
        ) {
            let rows: Vec<String> = lengths.iter().map(|it| "x".repeat(*it)).collect();
            let row = row % u16::try_from(rows.len()).unwrap();
            let cursor_row = rows[usize::from(row)].clone();
            let drawn = draw(&view(rows, row), chars);
            prop_assert!(drawn.text().chars().count() <= chars.max(21));
            let start: String = cursor_row.chars().take(MIN_ROW_CHARS).collect();
            prop_assert!(drawn.rows.iter().any(|it| it.starts_with(&start)));
        }
    }
}
