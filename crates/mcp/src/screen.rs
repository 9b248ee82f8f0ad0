//! A screen as text: what an agent sees of a terminal, within the budget of a reply.

use ostler_terminal::ScreenSnapshot;
use serde_json::{Value, json};

use ostler_render::truncated;

/// The most characters of a title.
const TITLE_CHARS: usize = 80;
/// Rows are not cut shorter than this; instead, rows far from the cursor are omitted.
const MIN_ROW_CHARS: usize = 40;

/// The text of a screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RenderedScreen {
    /// Its rows, without blank ones at the end.
    pub(super) rows: Vec<String>,
    /// The omitted part, as text.
    pub(super) truncation: Option<String>,
}

impl RenderedScreen {
    /// The rows as one text.
    pub(super) fn text(&self) -> String {
        if self.rows.is_empty() {
            return "(the screen is blank)".to_owned();
        }
        self.rows.join("\n")
    }
}

/// The rows of a screen in at most `chars` characters: all of them where they fit, else each
/// truncated at its end, else only those around the cursor.
pub(super) fn render_screen(view: &ScreenSnapshot, chars: usize) -> RenderedScreen {
    let used = view.rows.iter().rposition(|row| !row.trim().is_empty());
    let rows = &view.rows[..used.map_or(0, |last| last + 1)];
    let lengths: Vec<usize> = rows.iter().map(|row| row.chars().count()).collect();
    let fits = |width: usize| cost(&lengths, width) <= chars;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    if fits(longest) {
        return RenderedScreen {
            rows: rows.to_vec(),
            truncation: None,
        };
    }
    if !fits(MIN_ROW_CHARS) {
        return rows_around_cursor(rows, usize::from(view.cursor.row), chars);
    }
    // The largest width that fits; cutting at `longest` does not.
    let (mut width, mut beyond) = (MIN_ROW_CHARS, longest);
    while beyond - width > 1 {
        let middle = width.midpoint(beyond);
        if fits(middle) {
            width = middle;
        } else {
            beyond = middle;
        }
    }
    RenderedScreen {
        rows: rows.iter().map(|row| truncated(row, width)).collect(),
        truncation: Some(format!("rows longer than {width} characters end in … here")),
    }
}

/// The characters of rows cut at this width, with line ends and truncation marks.
fn cost(lengths: &[usize], width: usize) -> usize {
    lengths
        .iter()
        .map(|length| length.min(&(width + 1)) + 1)
        .sum()
}

/// The rows around the cursor, as many as fit, each cut.
fn rows_around_cursor(rows: &[String], cursor: usize, chars: usize) -> RenderedScreen {
    let fitting = (chars / (MIN_ROW_CHARS + 2)).clamp(1, rows.len());
    let first = cursor.saturating_sub(fitting / 2).min(rows.len() - fitting);
    let visible = &rows[first..first + fitting];
    let (above, below) = (first, rows.len() - first - fitting);
    RenderedScreen {
        rows: visible
            .iter()
            .map(|row| truncated(row, MIN_ROW_CHARS))
            .collect(),
        truncation: Some(format!(
            "{above} rows above and {below} below these are not shown, and rows end in … after \
             {MIN_ROW_CHARS} characters"
        )),
    }
}

/// `80x24, cursor row 3 column 13, alternate screen, title "vim"`; rows and columns count from 1.
pub(super) fn describe_view(view: &ScreenSnapshot) -> String {
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
    let title = clean_title(view);
    if !title.is_empty() {
        facts.push_str(&format!(", title \"{title}\""));
    }
    if !view.exact {
        facts.push_str(", inexact: output was dropped before it was drawn");
    }
    facts
}

/// The title, on one short line.
pub(super) fn clean_title(view: &ScreenSnapshot) -> String {
    let title = view.title.replace(char::is_control, " ");
    truncated(title.trim(), TITLE_CHARS)
}

/// A [`ScreenSnapshot`] as JSON, with its rows as they are shown.
pub(super) fn fields(view: &ScreenSnapshot, rendered: &RenderedScreen) -> Value {
    json!({
        "size": view.size,
        "cursor": view.cursor,
        "title": clean_title(view),
        "alternate": view.alternate,
        "rows": rendered.rows,
        "offset": view.offset,
        "exact": view.exact,
        "cut": rendered.truncation.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use ostler_model::TermSize;
    use ostler_terminal::{CursorPosition, Modes};
    use proptest::prelude::*;

    use super::*;

    fn view(rows: Vec<String>, row: u16) -> ScreenSnapshot {
        ScreenSnapshot {
            size: TermSize {
                cols: 80,
                rows: u16::try_from(rows.len()).unwrap_or(u16::MAX),
            },
            rows,
            cursor: CursorPosition {
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
        let drawn = render_screen(&view(rows.to_vec(), 3), 1_000);
        assert_eq!(drawn.text(), "$ ls\n\na  b");
        assert_eq!(drawn.truncation, None);
        assert_eq!(
            render_screen(&view(Vec::new(), 0), 10).text(),
            "(the screen is blank)"
        );
    }

    #[test]
    fn a_wide_screen_is_cut_at_its_right() {
        let rows = vec!["x".repeat(300); 100];
        let drawn = render_screen(&view(rows, 3), 19_000);
        assert_eq!(drawn.rows.len(), 100);
        assert!(drawn.text().chars().count() <= 19_000);
        assert!(drawn.rows[0].ends_with('…'));
        assert!(drawn.rows[0].chars().count() > 180);
        assert!(drawn.truncation.is_some());
    }

    #[test]
    fn what_is_known_stands_in_one_line() {
        let mut it = view(vec!["a".to_owned()], 0);
        it.title = "vim\u{7} a".to_owned();
        it.alternate = true;
        let description = "80x1, cursor row 1 column 5, alternate screen, title \"vim  a\"";
        assert_eq!(describe_view(&it), description);
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
            let drawn = render_screen(&view(rows, row), chars);
            prop_assert!(drawn.text().chars().count() <= chars.max(21));
            let start: String = cursor_row.chars().take(MIN_ROW_CHARS).collect();
            prop_assert!(drawn.rows.iter().any(|it| it.starts_with(&start)));
        }
    }
}
