//! Rows that scrolled off the top: they come back when the terminal grows, as in xterm and tmux.
//! `avt` keeps them but leaves them out of its dumps.

use std::fmt::Write;

use avt::{Color, Line, Pen, Terminal};

use super::Avt;

/// The number of scrolled-off rows that are kept: enough for a screen that grows twice, and
/// 260 kB at 80 columns.
pub(super) const SCROLLBACK_ROWS: usize = 200;

impl Avt {
    /// Text that restores this scrollback on a blank terminal and leaves the rest blank.
    ///
    /// Each row is printed at the top and scrolled off. A wrapped row is followed by a printed
    /// blank, which wraps it.
    pub(super) fn dump_scrollback(&self) -> String {
        let mut text = String::new();
        let (_, rows) = self.terminal.size();
        let primary = self.terminal.primary_screen();
        let scrolled_rows = primary.all_lines().count().saturating_sub(rows);
        for line in primary.all_lines().take(scrolled_rows) {
            text.push_str("\u{1b}[H");
            push_line(&mut text, line);
            text.push_str("\u{1b}[m");
            if line.is_wrapped() {
                text.push(' ');
            }
            // A screen of one row has scrolled by wrapping.
            if !line.is_wrapped() || rows > 1 {
                text.push_str("\u{1b}[S");
            }
        }
        if scrolled_rows > 0 {
            text.push_str("\u{1b}[H");
        }
        if self.clears_scrollback {
            text.push_str("\u{1b}[3J");
        }
        text
    }

    /// Drops the scrollback, where the program requested it (`CSI 3 J`). It is deferred until it
    /// makes a difference: only a resize can show the scrollback.
    pub(super) fn clear_scrollback(&mut self) {
        if !std::mem::take(&mut self.clears_scrollback) {
            return;
        }
        let dump = self.terminal.dump();
        let (cols, rows) = self.terminal.size();
        self.terminal = blank_terminal(cols, rows);
        self.terminal.feed(dump);
    }
}

/// A blank terminal of an allowed size.
pub(super) fn blank_terminal(cols: usize, rows: usize) -> Terminal {
    Terminal::with_scrollback(cols, rows, Some(SCROLLBACK_ROWS))
        .expect("a fitting size has no zero")
}

/// Appends a row's cells; trailing blank ones only where the row is wrapped.
fn push_line(text: &mut String, line: &Line) {
    let cells = line.cells();
    let is_blank =
        |cell: &avt::Cell| cell.char() == ' ' && cell.width() == 1 && cell.pen().is_default();
    let end = if line.is_wrapped() {
        cells.len()
    } else {
        cells
            .iter()
            .rposition(|cell| !is_blank(cell))
            .map_or(0, |last| last + 1)
    };
    let mut pen = Pen::default();
    for cell in cells[..end].iter().filter(|cell| cell.width() > 0) {
        if *cell.pen() != pen {
            pen = *cell.pen();
            push_pen(text, &pen);
        }
        text.push(cell.char());
    }
}

/// Appends the sequence that sets a pen, whatever it was before.
fn push_pen(text: &mut String, pen: &Pen) {
    text.push_str("\u{1b}[0");
    for (base, color) in [(38, pen.foreground()), (48, pen.background())] {
        // Writing to a string does not fail.
        let _ = match color {
            None => Ok(()),
            Some(Color::Indexed(index)) => write!(text, ";{base};5;{index}"),
            Some(Color::RGB(rgb)) => write!(text, ";{base};2;{};{};{}", rgb.r, rgb.g, rgb.b),
        };
    }
    let attributes = [
        (pen.is_bold(), ";1"),
        (pen.is_faint(), ";2"),
        (pen.is_italic(), ";3"),
        (pen.is_underline(), ";4"),
        (pen.is_blink(), ";5"),
        (pen.is_inverse(), ";7"),
        (pen.is_strikethrough(), ";9"),
    ];
    for (_, parameter) in attributes.iter().filter(|(on, _)| *on) {
        text.push_str(parameter);
    }
    text.push('m');
}
