//! The emulator: the `avt` crate, with corrections for what it leaves out.
//!
//! * A zero-width character (combining mark, joiner, variation selector) is added to the cell
//!   before the cursor and the cursor stays, as in tmux and xterm; `avt` gives it a cell.
//! * C1 controls are dropped: as in tmux, they are not controls in UTF-8, and they are frequent
//!   in binary data.
//! * The old alternate screen (mode 47) and `ESC k` titles are supported.
//! * Erasing keeps the background colour and no other attribute of the pen (`bce` of terminfo).
//! * Repetition (REP) ends at the right margin, so that a few bytes cannot cost much time.

mod combining;
mod repaint;
mod scrollback;
mod sgr;
mod width;

use std::collections::HashSet;
use std::fmt;

use avt::parser::{AnsiMode, DecMode, EdScope, Function, Parser, State};
use avt::{ScreenKind, Terminal};
use ostler_model::TermSize;

use self::sgr::{SgrState, erases_cells};
use crate::emulator::{Emulator, EmulatorState, Repaint};
use crate::graphemes::{Graphemes, JOINER, is_placeholder};

/// A longer control sequence is ignored.
const CONTROL_BYTES: usize = 256;

/// The first character that may have zero width.
const FIRST_ZERO_WIDTH: char = '\u{300}';

/// An `avt` terminal with the corrections of this module.
pub(crate) struct Avt {
    parser: Parser,
    terminal: Terminal,
    graphemes: Graphemes,
    /// The incomplete sequence, as far as the parser has to be given it again.
    incomplete: String,
    /// Insert mode (IRM), which `avt` does not expose.
    insert: bool,
    /// Whether a cell may end in a zero-width joiner.
    joins: bool,
    sgr: SgrState,
    /// Whether the scrollback is to be dropped before it can become visible again.
    clears_scrollback: bool,
}

impl fmt::Debug for Avt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Avt")
            .field("size", &self.terminal.size())
            .field("cursor", &self.terminal.cursor())
            .finish_non_exhaustive()
    }
}

impl Avt {
    pub(crate) fn new(size: TermSize) -> Self {
        let size = size.clamped();
        let (cols, rows) = (usize::from(size.cols), usize::from(size.rows));
        Self {
            parser: Parser::new(),
            terminal: scrollback::blank_terminal(cols, rows),
            graphemes: Graphemes::default(),
            incomplete: String::new(),
            insert: false,
            joins: false,
            sgr: SgrState::default(),
            clears_scrollback: false,
        }
    }

    /// Processes a character that is not printed at once: a control, or part of a sequence.
    fn control(&mut self, c: char) {
        let before = self.parser.state;
        // `ESC k` begins a title in screen and tmux; it is skipped like other strings.
        let c = if before == State::Escape && c == 'k' {
            'X'
        } else {
            c
        };
        let function = self.parser.feed(c);
        let is_mode_47 = self.parser.state == State::Ground && self.is_mode_47(c);
        self.record_incomplete(before, c);
        if let Some(function) = function {
            self.execute(function);
        }
        if is_mode_47 {
            self.execute(mode_47(c));
        }
    }

    /// Processes a control sequence as [`whole_control_sequence`] finds it.
    fn control_sequence(&mut self, sequence: &str) {
        let mut function = None;
        for byte in sequence.bytes() {
            function = self.parser.feed(char::from(byte));
        }
        if let Some(function) = function {
            self.execute(function);
        }
    }

    /// Records what the parser has consumed of a sequence, for [`Emulator::dump`].
    fn record_incomplete(&mut self, before: State, c: char) {
        let state = self.parser.state;
        match state {
            State::Ground => self.incomplete.clear(),
            State::Escape if c == '\u{1b}' => {
                self.incomplete.clear();
                self.incomplete.push(c);
            }
            State::Escape
            | State::EscapeIntermediate
            | State::CsiEntry
            | State::CsiParam
            | State::CsiIntermediate
            | State::DcsEntry
            | State::DcsParam
            | State::DcsIntermediate => {
                if c >= ' ' {
                    self.incomplete.push(c);
                }
                if self.incomplete.len() > CONTROL_BYTES {
                    self.ignore_sequence(state);
                }
            }
            State::CsiIgnore
            | State::DcsPassthrough
            | State::DcsIgnore
            | State::OscString
            | State::SosPmApcString => {
                if state != before {
                    self.incomplete.push(c);
                }
            }
        }
    }

    /// Makes the parser skip the rest of the sequence that it is in.
    fn ignore_sequence(&mut self, state: State) {
        let is_dcs = matches!(
            state,
            State::DcsEntry | State::DcsParam | State::DcsIntermediate
        );
        let ignored_prefix = if is_dcs { "\u{1b}P:" } else { "\u{1b}[:" };
        self.parser = Parser::new();
        self.incomplete.clear();
        for c in ignored_prefix.chars() {
            self.parser.feed(c);
            self.incomplete.push(c);
        }
    }

    /// Whether a final `c` ends a DECSET or DECRST with mode 47, which `avt` does not know.
    fn is_mode_47(&self, c: char) -> bool {
        matches!(c, 'h' | 'l')
            && self
                .incomplete
                .strip_prefix("\u{1b}[?")
                .is_some_and(|modes| modes.split(';').any(|mode| mode == "47"))
    }

    fn execute(&mut self, function: Function) {
        if let Function::Rep(times) = function {
            return self.repeat(times);
        }
        // A tab does not clear a pending wrap (xterm, tmux).
        if matches!(function, Function::Ht | Function::Cht(_)) && self.wraps_next() {
            return;
        }
        if matches!(function, Function::Ed(EdScope::SavedLines)) {
            self.clears_scrollback = true;
        } else if let Function::Sm(modes) = &function {
            self.insert |= modes.as_slice().contains(&AnsiMode::Insert);
        } else if let Function::Rm(modes) = &function {
            self.insert &= !modes.as_slice().contains(&AnsiMode::Insert);
        } else if matches!(function, Function::Ris | Function::Decstr) {
            self.insert = false;
            self.clears_scrollback &= !matches!(function, Function::Ris);
        }
        if self.sgr.shows_on_erase() {
            return self.execute_with_plain_erase(function);
        }
        self.sgr.track(&function);
        self.terminal.execute(function);
    }

    /// As [`Self::execute`], with a pen whose attributes would show on blank cells.
    fn execute_with_plain_erase(&mut self, function: Function) {
        if let Function::Decset(modes) = &function {
            for step in modes
                .as_slice()
                .iter()
                .flat_map(|mode| sgr::mode_steps(*mode))
            {
                let blanks = *step == DecMode::AltScreenBuffer;
                self.execute_step(Function::Decset(vec![*step].into()), blanks);
            }
            return;
        }
        let blanks = erases_cells(&function);
        self.execute_step(function, blanks);
    }

    fn execute_step(&mut self, function: Function, blanks: bool) {
        self.sgr.track(&function);
        let (off, on) = self.sgr.reset_and_restore();
        if blanks {
            self.terminal.execute([off, function, on]);
        } else {
            self.terminal.execute(function);
        }
    }

    /// Whether a wrap is pending: the cursor is behind the last column.
    fn wraps_next(&self) -> bool {
        self.terminal.cursor().col >= self.terminal.size().0
    }

    fn repeat(&mut self, times: u16) {
        let room = self
            .terminal
            .size()
            .0
            .saturating_sub(self.terminal.cursor().col);
        let times = times.max(1).min(u16::try_from(room).unwrap_or(u16::MAX));
        if times > 0 {
            self.terminal.execute(Function::Rep(times));
        }
    }

    /// Prints a character that is not ASCII.
    fn print(&mut self, c: char) {
        if is_placeholder(c) {
            return self.print_cell('\u{fffd}', 1);
        }
        if c < FIRST_ZERO_WIDTH {
            return self.print_cell(c, 1);
        }
        let width = width::width(c);
        if width == 0 {
            self.combine_with_previous(c);
        } else if !(self.joins && self.follows_joiner() && self.combine_with_previous(c)) {
            self.print_cell(c, width);
        }
    }

    fn print_cell(&mut self, c: char, width: usize) {
        // `avt` inserts one column only.
        let cursor = self.terminal.cursor();
        if width == 2 && self.insert && cursor.col + 2 < self.terminal.size().0 {
            self.terminal.execute(Function::Ich(1));
        }
        self.terminal.execute(Function::Print(c));
    }

    /// Loads text of a dump: stand-ins are kept as they are, nothing is combined.
    fn load_text(&mut self, text: &str) {
        for c in text.chars() {
            if c >= ' ' && self.parser.state == State::Ground {
                self.joins |= self.graphemes.get(c).is_some_and(|t| t.ends_with(JOINER));
                self.terminal.execute(Function::Print(c));
            } else {
                self.control(c);
            }
        }
    }

    /// Every stand-in on a screen that is visible or can become visible again.
    fn placeholders(&self) -> HashSet<char> {
        let screens = [self.terminal.screen(), self.terminal.primary_screen()];
        let lines = screens.into_iter().flat_map(avt::Screen::all_lines);
        lines
            .flat_map(avt::Line::chars)
            .filter(|c| is_placeholder(*c))
            .collect()
    }
}

fn mode_47(end: char) -> Function {
    let modes = vec![DecMode::AltScreenBuffer].into();
    if end == 'h' {
        Function::Decset(modes)
    } else {
        Function::Decrst(modes)
    }
}

impl Emulator for Avt {
    fn feed(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.parser.state == State::Ground {
                let run = printable_run(rest.as_bytes());
                let (ascii, after) = rest.split_at(run);
                if run > 0 {
                    let print = |byte| Function::Print(char::from(byte));
                    self.terminal.execute(ascii.bytes().map(print));
                }
                rest = after;
                if let Some(length) = whole_control_sequence(rest.as_bytes()) {
                    let (sequence, after) = rest.split_at(length);
                    self.control_sequence(sequence);
                    rest = after;
                    continue;
                }
            }
            let mut chars = rest.chars();
            let Some(c) = chars.next() else {
                return;
            };
            rest = chars.as_str();
            match c {
                '\u{7f}'..='\u{9f}' => {}
                c if c > '\u{9f}' && self.parser.state == State::Ground => self.print(c),
                c => self.control(c),
            }
        }
    }

    fn resize(&mut self, size: TermSize) {
        let size = size.clamped();
        if size == self.size() {
            return;
        }
        self.clear_scrollback();
        self.terminal
            .resize(usize::from(size.cols), usize::from(size.rows));
    }

    fn size(&self) -> TermSize {
        let (cols, rows) = self.terminal.size();
        TermSize {
            cols: to_u16(cols),
            rows: to_u16(rows),
        }
    }

    fn rows(&self) -> Vec<String> {
        let lines = self.terminal.screen().visible_lines();
        lines
            .map(|line| {
                let mut row = String::with_capacity(line.len());
                for c in line.chars() {
                    if c.is_ascii() {
                        row.push(c);
                    } else {
                        self.graphemes.push_expanded(c, &mut row);
                    }
                }
                row.truncate(row.trim_end_matches(' ').len());
                row
            })
            .collect()
    }

    fn cursor(&self) -> (u16, u16, bool) {
        let cursor = self.terminal.cursor();
        let last = self.terminal.size().0 - 1;
        (
            to_u16(cursor.col.min(last)),
            to_u16(cursor.row),
            cursor.visible,
        )
    }

    fn is_alternate(&self) -> bool {
        self.terminal.active_screen_kind() == ScreenKind::Alternate
    }

    fn dump(&self) -> EmulatorState {
        let mut text = self.dump_scrollback();
        text.push_str(&self.terminal.dump());
        text.push_str(&self.incomplete);
        let mut clusters: Vec<(char, String)> = self
            .placeholders()
            .into_iter()
            .filter_map(|c| Some((c, self.graphemes.get(c)?.to_owned())))
            .collect();
        clusters.sort_unstable();
        EmulatorState { text, clusters }
    }

    fn load(&mut self, dump: &EmulatorState) {
        for (c, cluster) in &dump.clusters {
            self.graphemes.restore(*c, cluster);
        }
        self.load_text(&dump.text);
    }

    fn discard_incomplete(&mut self) {
        self.parser = Parser::new();
        self.incomplete.clear();
    }

    fn repaint(&self) -> Repaint {
        Repaint {
            text: repaint::for_real_terminal(&self.terminal.dump(), &self.graphemes),
            incomplete: self.incomplete.clone(),
        }
    }
}

/// The length of the control sequence at the beginning, where it is complete and needs no special
/// treatment: the usual case, in which it need not be recorded.
fn whole_control_sequence(bytes: &[u8]) -> Option<usize> {
    let parameters = bytes.strip_prefix(b"\x1b[")?;
    let parameters = &parameters[..parameters.len().min(CONTROL_BYTES - 2)];
    let length = parameters
        .iter()
        .position(|byte| !matches!(byte, b' '..=b'?'))?;
    let plain = match parameters[length] {
        b'h' | b'l' => !parameters[..length].windows(2).any(|two| two == b"47"),
        last => matches!(last, b'@'..=b'~'),
    };
    plain.then_some(length + 3)
}

/// The number of printable ASCII bytes at the beginning.
fn printable_run(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| !matches!(byte, b' '..=b'~'))
        .unwrap_or(bytes.len())
}

/// Converts a size. Sizes are at most [`TermSize::COLS_MAX`], so that they fit.
fn to_u16(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
