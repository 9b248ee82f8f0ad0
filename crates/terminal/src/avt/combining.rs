//! Combining characters, which are added to the cell before the cursor.

use avt::parser::{AnsiMode, Function, SgrOp};
use avt::{Cell, Pen};

use super::{Avt, to_u16};
use crate::graphemes::{CLUSTER_BYTES, JOINER};

impl Avt {
    /// The cell before the cursor and its column, where a mark can be added to it.
    fn cell_before_cursor(&self) -> Option<(usize, Cell)> {
        let cursor = self.terminal.cursor();
        let line = self.terminal.screen().line(cursor.row)?;
        let mut col = cursor.col.checked_sub(1)?;
        if line.cells()[col].width() == 0 {
            col = col.checked_sub(1)?;
        }
        let cell = line.cells()[col];
        (col + usize::from(cell.width()) == cursor.col).then_some((col, cell))
    }

    /// Whether the cell before the cursor ends in a zero-width joiner.
    pub(super) fn follows_joiner(&self) -> bool {
        self.cell_before_cursor()
            .and_then(|(_, cell)| self.graphemes.get(cell.char()))
            .is_some_and(|cluster| cluster.ends_with(JOINER))
    }

    /// Adds `mark` to the cell before the cursor, which stays where it is. False where there is no
    /// such cell or the cell has no room for more.
    pub(super) fn combine_with_previous(&mut self, mark: char) -> bool {
        let Some((col, cell)) = self.cell_before_cursor() else {
            return false;
        };
        let mut cluster = String::with_capacity(CLUSTER_BYTES);
        self.graphemes.push_expanded(cell.char(), &mut cluster);
        cluster.push(mark);
        if cluster.len() > CLUSTER_BYTES {
            return false;
        }
        let mut clusters = std::mem::take(&mut self.graphemes);
        let placeholder = clusters.intern(&cluster, cell.width() == 2, || self.placeholders());
        self.graphemes = clusters;
        let Some(stand_in) = placeholder else {
            return false;
        };
        self.joins |= mark == JOINER;
        self.rewrite_cell(col, stand_in, *cell.pen());
        true
    }

    /// Prints `c` with its pen over the cell at `col`, which has the same width and ends at the
    /// cursor. Nothing else changes: a pending wrap stays pending.
    fn rewrite_cell(&mut self, col: usize, c: char, pen: Pen) {
        let insert = vec![AnsiMode::Insert];
        if self.insert {
            self.terminal.execute(Function::Rm(insert.clone().into()));
        }
        let move_to = Function::Cha(to_u16(col + 1));
        self.terminal.execute([move_to.clone(), Function::Print(c)]);
        // `avt` does not expose its pen: the cell just printed does.
        let row = self.terminal.cursor().row;
        let screen = self.terminal.screen();
        let current = screen.line(row).map(|line| *line.cells()[col].pen());
        if let Some(current) = current
            && current != pen
        {
            self.terminal
                .execute([sgr(&pen), move_to, Function::Print(c), sgr(&current)]);
        }
        if self.insert {
            self.terminal.execute(Function::Sm(insert.into()));
        }
    }
}

/// The function that sets a pen, whatever it was before.
fn sgr(pen: &Pen) -> Function {
    let mut ops = vec![SgrOp::Reset];
    ops.extend(pen.foreground().map(SgrOp::SetForegroundColor));
    ops.extend(pen.background().map(SgrOp::SetBackgroundColor));
    let attributes = [
        (pen.is_bold(), SgrOp::SetBoldIntensity),
        (pen.is_faint(), SgrOp::SetFaintIntensity),
        (pen.is_italic(), SgrOp::SetItalic),
        (pen.is_underline(), SgrOp::SetUnderline),
        (pen.is_blink(), SgrOp::SetBlink),
        (pen.is_inverse(), SgrOp::SetInverse),
        (pen.is_strikethrough(), SgrOp::SetStrikethrough),
    ];
    ops.extend(attributes.iter().filter(|(on, _)| *on).map(|(_, op)| *op));
    Function::Sgr(ops.into())
}
