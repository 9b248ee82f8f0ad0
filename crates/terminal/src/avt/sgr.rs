//! The pen at erasing. `avt` fills with every attribute of its pen; terminals fill with the
//! background colour alone (`bce` of terminfo), so an underlined or reversed pen must not show in
//! erased cells.

use avt::parser::{DecMode, Function, SgrOp};

/// Attributes of the pen that show on a blank cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct SgrAttributes {
    underline: bool,
    inverse: bool,
    strikethrough: bool,
}

/// The pen's attributes, tracked from function to function: `avt` does not expose them.
#[derive(Debug, Default)]
pub(super) struct SgrState {
    current: SgrAttributes,
    /// Those saved with the cursor (DECSC), on the primary and on the alternate screen.
    saved: [SgrAttributes; 2],
    alternate: bool,
}

impl SgrState {
    /// Whether the pen has an attribute that erasing must not leave behind.
    pub(super) fn shows_on_erase(&self) -> bool {
        self.current != SgrAttributes::default()
    }

    /// The functions that remove these attributes from the pen and restore them.
    pub(super) fn reset_and_restore(&self) -> (Function, Function) {
        let off = [
            SgrOp::ResetUnderline,
            SgrOp::ResetInverse,
            SgrOp::ResetStrikethrough,
        ];
        let on = [
            (self.current.underline, SgrOp::SetUnderline),
            (self.current.inverse, SgrOp::SetInverse),
            (self.current.strikethrough, SgrOp::SetStrikethrough),
        ];
        let on: Vec<SgrOp> = on
            .into_iter()
            .filter(|(on, _)| *on)
            .map(|(_, op)| op)
            .collect();
        (
            Function::Sgr(off.as_slice().into()),
            Function::Sgr(on.into()),
        )
    }

    /// Tracks what a function does to the pen.
    pub(super) fn track(&mut self, function: &Function) {
        if let Function::Sgr(ops) = function {
            for op in ops.as_slice() {
                self.current.apply(*op);
            }
        } else if matches!(function, Function::Decsc | Function::Scosc) {
            self.save();
        } else if matches!(function, Function::Decrc | Function::Scorc) {
            self.restore();
        } else if let Function::Decset(modes) = function {
            modes.as_slice().iter().for_each(|mode| self.set(*mode));
        } else if let Function::Decrst(modes) = function {
            modes.as_slice().iter().for_each(|mode| self.reset(*mode));
        } else if matches!(function, Function::Decstr) {
            self.current = SgrAttributes::default();
            self.save();
        } else if matches!(function, Function::Ris) {
            *self = Self::default();
        }
    }

    fn save(&mut self) {
        self.saved[usize::from(self.alternate)] = self.current;
    }

    fn restore(&mut self) {
        self.current = self.saved[usize::from(self.alternate)];
    }

    fn set(&mut self, mode: DecMode) {
        match mode {
            DecMode::SaveCursor => self.save(),
            DecMode::SaveCursorAltScreenBuffer => {
                self.save();
                self.alternate = true;
            }
            DecMode::AltScreenBuffer => self.alternate = true,
            DecMode::CursorKeys
            | DecMode::Origin
            | DecMode::AutoWrap
            | DecMode::TextCursorEnable => {}
        }
    }

    fn reset(&mut self, mode: DecMode) {
        match mode {
            DecMode::SaveCursor => self.restore(),
            DecMode::SaveCursorAltScreenBuffer => {
                self.alternate = false;
                self.restore();
            }
            DecMode::AltScreenBuffer => self.alternate = false,
            DecMode::CursorKeys
            | DecMode::Origin
            | DecMode::AutoWrap
            | DecMode::TextCursorEnable => {}
        }
    }
}

impl SgrAttributes {
    fn apply(&mut self, op: SgrOp) {
        if op == SgrOp::Reset {
            *self = Self::default();
        }
        let changes = [
            (
                &mut self.underline,
                SgrOp::SetUnderline,
                SgrOp::ResetUnderline,
            ),
            (&mut self.inverse, SgrOp::SetInverse, SgrOp::ResetInverse),
            (
                &mut self.strikethrough,
                SgrOp::SetStrikethrough,
                SgrOp::ResetStrikethrough,
            ),
        ];
        for (attribute, set, reset) in changes {
            *attribute = op == set || (*attribute && op != reset);
        }
    }
}

/// Whether a function leaves blank cells behind.
pub(super) fn erases_cells(function: &Function) -> bool {
    matches!(
        function,
        Function::Ed(_)
            | Function::El(_)
            | Function::Ech(_)
            | Function::Ich(_)
            | Function::Dch(_)
            | Function::Il(_)
            | Function::Dl(_)
            | Function::Su(_)
            | Function::Sd(_)
            | Function::Lf
            | Function::Nel
            | Function::Ri
    )
}

/// The steps by which a mode is set, of which only the switch to the alternate screen blanks cells.
pub(super) fn mode_steps(mode: DecMode) -> &'static [DecMode] {
    match mode {
        DecMode::SaveCursorAltScreenBuffer => &[DecMode::SaveCursor, DecMode::AltScreenBuffer],
        DecMode::SaveCursor => &[DecMode::SaveCursor],
        DecMode::AltScreenBuffer => &[DecMode::AltScreenBuffer],
        DecMode::CursorKeys => &[DecMode::CursorKeys],
        DecMode::Origin => &[DecMode::Origin],
        DecMode::AutoWrap => &[DecMode::AutoWrap],
        DecMode::TextCursorEnable => &[DecMode::TextCursorEnable],
    }
}
