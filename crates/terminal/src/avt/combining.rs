//! Characters that go into the cell before the cursor.

use avt::parser::{AnsiMode, Function, SgrOp};
use avt::{Cell, Pen};

use super::{Avt, narrow};
use crate::graphemes::{CLUSTER_BYTES, JOINER};

impl Avt {
    /// The column of the cell before the cursor, where it is one a mark can go to, and it.
    fn before_cursor(&self) -> Option<(usize, Cell)> {
        let cursor = self.terminal.cursor();
        let line = self.terminal.screen().line(cursor.row)?;
        let mut col = cursor.col.checked_sub(1)?;
        if line.cells()[col].width() == 0 {
            col = col.checked_sub(1)?;
        }
        let cell = line.cells()[col];
        (col + usize::from(cell.width()) == cursor.col).then_some((col, cell))
    }

    /// Whether the cell before the cursor ends in a joiner.
    pub(super) fn follows_joiner(&self) -> bool {
        self.before_cursor()
            .and_then(|(_, cell)| self.clusters.get(cell.char()))
            .is_some_and(|cluster| cluster.ends_with(JOINER))
    }

    /// Puts `mark` into the cell before the cursor, which stays where it is. False where there
    /// is no such cell or no room for more.
    pub(super) fn combine(&mut self, mark: char) -> bool {
        let Some((col, cell)) = self.before_cursor() else {
            return false;
        };
        let mut cluster = String::with_capacity(CLUSTER_BYTES);
        self.clusters.push_expanded(cell.char(), &mut cluster);
        cluster.push(mark);
        if cluster.len() > CLUSTER_BYTES {
            return false;
        }
        let mut clusters = std::mem::take(&mut self.clusters);
        let stand_in = clusters.intern(&cluster, cell.width() == 2, || self.stand_ins());
        self.clusters = clusters;
        let Some(stand_in) = stand_in else {
            return false;
        };
        self.joins |= mark == JOINER;
        self.rewrite(col, stand_in, *cell.pen());
        true
    }

    /// Prints `c` over the cell at `col`, which is as wide and ends at the cursor, with the
    /// pen it has. Everything else is as before: a pending wrap pends again.
    fn rewrite(&mut self, col: usize, c: char, pen: Pen) {
        let insert = vec![AnsiMode::Insert];
        if self.insert {
            self.terminal.execute(Function::Rm(insert.clone().into()));
        }
        let to = Function::Cha(narrow(col + 1));
        self.terminal.execute([to.clone(), Function::Print(c)]);
        // `avt` does not tell its pen: the cell just printed does.
        let row = self.terminal.cursor().row;
        let screen = self.terminal.screen();
        let current = screen.line(row).map(|line| *line.cells()[col].pen());
        if let Some(current) = current
            && current != pen
        {
            self.terminal
                .execute([sgr(&pen), to, Function::Print(c), sgr(&current)]);
        }
        if self.insert {
            self.terminal.execute(Function::Sm(insert.into()));
        }
    }
}

/// What sets a pen, whatever it was.
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
