//! Lines that overwrite earlier lines: progress of several rows, spinners, cleared screens. A
//! [`RedrawFolder`] leaves the last state of each row and counts the lines that went into it.

use ostler_model::StreamName;

use super::ansi::{AnsiToken, CELLS, for_each_token, is_plain};
use super::clean::{Cells, clean};
use super::row::OutputRow;

/// Rows above the cursor that can still be overwritten, like a terminal's screen.
const SCREEN_ROWS: usize = 256;
/// The most row changes of one line; further movements are ignored.
const LINE_MOVES: usize = 512;

/// Takes lines in order, and returns rows as a terminal would leave them.
#[derive(Debug, Default)]
pub struct RedrawFolder {
    /// Rows in order of their creation; none where one was erased.
    rows: Vec<Option<OutputRow>>,
    screens: Vec<StreamScreen>,
}

/// The screen of one stream.
#[derive(Debug)]
struct StreamScreen {
    stream: StreamName,
    /// Its last rows, as indices into [`RedrawFolder::rows`].
    row_indices: Vec<usize>,
    /// The row of the cursor; an index past the last row means a new one.
    cursor_row: usize,
    /// The topmost row of a cleared screen.
    top: Option<usize>,
}

/// A line being drawn.
struct RowEditor {
    cells: Cells,
    /// Lines and bytes of rows that were erased.
    lines: u64,
    bytes: u64,
    /// Number of row changes so far.
    moves: usize,
}

impl RedrawFolder {
    /// Adds one line; its text is as printed.
    pub fn push_line(&mut self, row: OutputRow) {
        let screen = self.screen_of(row.stream);
        self.screens[screen].trim();
        let fresh = self.screens[screen].is_fresh();
        if fresh && is_plain(&row.text) {
            return self.append(screen, row);
        }
        self.draw(screen, row);
    }

    /// Adds one line that is not part of a redraw.
    pub fn push_whole_line(&mut self, row: OutputRow) {
        let screen = self.screen_of(row.stream);
        self.screens[screen].cursor_row = self.screens[screen].row_indices.len();
        let text = clean(&row.text).into_owned();
        self.append(screen, OutputRow { text, ..row });
    }

    /// The row that starts at this offset, to correct its text.
    pub fn row_at_offset(&mut self, offset: u64) -> Option<&mut OutputRow> {
        let mut rows = self.rows.iter_mut().rev().flatten();
        rows.find(|row| row.offset == offset)
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows left on the screen and above it.
    #[must_use]
    pub fn finish(mut self) -> Vec<OutputRow> {
        for screen in std::mem::take(&mut self.screens) {
            self.drop_trailing_blanks(&screen);
        }
        self.rows.into_iter().flatten().collect()
    }

    fn screen_of(&mut self, stream: StreamName) -> usize {
        let index = self
            .screens
            .iter()
            .position(|screen| screen.stream == stream);
        index.unwrap_or_else(|| {
            self.screens.push(StreamScreen {
                stream,
                row_indices: Vec::new(),
                cursor_row: 0,
                top: None,
            });
            self.screens.len() - 1
        })
    }

    fn append(&mut self, screen: usize, row: OutputRow) {
        let screen = &mut self.screens[screen];
        screen.row_indices.push(self.rows.len());
        screen.cursor_row = screen.row_indices.len();
        self.rows.push(Some(row));
    }

    fn draw(&mut self, screen: usize, line: OutputRow) {
        let mut editor = self.edit_row(screen, 0);
        for_each_token(&line.text, |token| match token {
            AnsiToken::Control(action, number) => {
                self.control(screen, &mut editor, action, number, &line);
            }
            AnsiToken::Put(_) | AnsiToken::Return | AnsiToken::Back => {
                editor.cells.apply(token);
            }
        });
        self.end_line(screen, editor, line);
    }

    /// Starts to edit the row of the cursor.
    fn edit_row(&self, screen: usize, column: usize) -> RowEditor {
        let cells = match self.cursor_row(screen) {
            Some(row) => Cells::from_text(&row.text, column),
            None => Cells::from_text("", column),
        };
        RowEditor {
            cells,
            lines: 0,
            bytes: 0,
            moves: 0,
        }
    }

    fn cursor_row(&self, screen: usize) -> Option<&OutputRow> {
        let screen = &self.screens[screen];
        let index = *screen.row_indices.get(screen.cursor_row)?;
        self.rows[index].as_ref()
    }

    /// Applies movements between rows and erasures of other rows; the rest stays within the row.
    fn control(
        &mut self,
        screen: usize,
        editor: &mut RowEditor,
        action: char,
        number: usize,
        line: &OutputRow,
    ) {
        let steps = number.max(1);
        let at = self.screens[screen].cursor_row;
        match (action, number) {
            ('A', _) => self.move_to(screen, editor, at.saturating_sub(steps), line),
            ('B', _) => self.move_to(screen, editor, at + steps, line),
            ('F', _) => {
                self.move_to(screen, editor, at.saturating_sub(steps), line);
                editor.cells.column = 0;
            }
            ('E', _) => {
                self.move_to(screen, editor, at + steps, line);
                editor.cells.column = 0;
            }
            ('H' | 'f', _) => {
                let top = self.screens[screen].home_row();
                self.move_to(screen, editor, top + steps - 1, line);
                editor.cells.column = 0;
            }
            ('J', 0) => {
                editor.cells.apply(AnsiToken::Control('K', 0));
                self.erase(screen, editor, at + 1);
            }
            ('J', 2 | 3) => {
                let top = self.screens[screen].home_row();
                self.erase(screen, editor, top);
                self.screens[screen].cursor_row = top;
                editor.cells.apply(AnsiToken::Control('K', 2));
            }
            _ => editor.cells.apply(AnsiToken::Control(action, number)),
        }
    }

    /// Commits the present row and starts to edit another.
    fn move_to(&mut self, screen: usize, editor: &mut RowEditor, to: usize, line: &OutputRow) {
        if editor.moves == LINE_MOVES {
            return;
        }
        self.commit_row(screen, editor, line);
        let indices = self.screens[screen].row_indices.len();
        self.screens[screen].cursor_row = to.min(indices);
        let column = editor.cells.column.min(CELLS);
        let RowEditor {
            lines,
            bytes,
            moves,
            ..
        } = *editor;
        *editor = RowEditor {
            lines,
            bytes,
            moves: moves + 1,
            ..self.edit_row(screen, column)
        };
    }

    /// Writes the drawn text into its row; creates one where something was drawn on a new row.
    fn commit_row(&mut self, screen: usize, editor: &mut RowEditor, line: &OutputRow) {
        let column = editor.cells.column;
        let cells = std::mem::take(&mut editor.cells);
        editor.cells.column = column;
        let fresh = self.screens[screen].is_fresh();
        if fresh && cells.is_empty() {
            return;
        }
        if fresh {
            self.append(
                screen,
                OutputRow {
                    lines: 0,
                    bytes: 0,
                    text: cells.text(),
                    ..line.clone()
                },
            );
            return;
        }
        let screen = &self.screens[screen];
        if let Some(row) = &mut self.rows[screen.row_indices[screen.cursor_row]] {
            row.text = cells.text();
        }
    }

    /// Removes the rows from `from` on; their counts go to the line that erased them.
    fn erase(&mut self, screen: usize, editor: &mut RowEditor, from: usize) {
        let from = from.min(self.screens[screen].row_indices.len());
        for index in self.screens[screen].row_indices.split_off(from) {
            if let Some(row) = self.rows[index].take() {
                editor.lines += row.lines;
                editor.bytes += row.bytes;
            }
        }
    }

    /// The line is complete: it counts for the row it ended in.
    fn end_line(&mut self, screen: usize, editor: RowEditor, line: OutputRow) {
        let lines = line.lines + editor.lines;
        let bytes = line.bytes + editor.bytes;
        if !self.screens[screen].is_fresh() {
            let index = self.screens[screen].row_indices[self.screens[screen].cursor_row];
            if let Some(row) = &mut self.rows[index] {
                row.text = editor.cells.text();
                row.at = line.at;
                row.lines += lines;
                row.bytes += bytes;
            }
            self.screens[screen].cursor_row += 1;
            return;
        }
        let unused = editor.moves > 0 && editor.cells.is_empty();
        let last = self.screens[screen]
            .row_indices
            .last()
            .copied()
            .filter(|_| unused);
        if let Some(row) = last.and_then(|index| self.rows[index].as_mut()) {
            row.lines += lines;
            row.bytes += bytes;
            return;
        }
        let text = editor.cells.text();
        self.append(
            screen,
            OutputRow {
                text,
                lines,
                bytes,
                ..line
            },
        );
    }

    /// Erased rows below the cursor are dropped; they count for the one above.
    fn drop_trailing_blanks(&mut self, screen: &StreamScreen) {
        let mut indices = screen.row_indices.clone();
        while indices.len() > screen.cursor_row.max(1) {
            let (last, above) = (indices[indices.len() - 1], indices[indices.len() - 2]);
            let blank = self.rows[last]
                .as_ref()
                .is_none_or(|row| row.text.trim().is_empty());
            if !blank {
                return;
            }
            if let (Some(row), Some(kept)) = (self.rows[last].take(), &mut self.rows[above]) {
                kept.lines += row.lines;
                kept.bytes += row.bytes;
            }
            indices.pop();
        }
    }
}

impl StreamScreen {
    const fn is_fresh(&self) -> bool {
        self.cursor_row >= self.row_indices.len()
    }

    /// The topmost row; on first use, all rows before it count as scrolled off.
    fn home_row(&mut self) -> usize {
        let at = self.cursor_row;
        *self.top.get_or_insert(at)
    }

    /// Drops rows that cannot be reached any more.
    fn trim(&mut self) {
        if self.row_indices.len() < 2 * SCREEN_ROWS {
            return;
        }
        let removed = self.row_indices.len() - SCREEN_ROWS;
        self.row_indices.drain(..removed);
        self.cursor_row = self.cursor_row.saturating_sub(removed);
        self.top = self.top.map(|top| top.saturating_sub(removed));
    }
}

#[cfg(test)]
#[path = "redraw_tests.rs"]
mod tests;
