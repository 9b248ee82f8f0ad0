//! Control sequences (CSI): their parameters, intermediate bytes and final byte.

use std::fmt;

/// A complete control sequence: `CSI ? 25 h` has the parameter 25, the intermediate byte `?` and
/// the final byte `h`.
#[derive(Clone, Copy)]
pub struct ControlSequence<'a> {
    params: &'a vte::Params,
    intermediates: &'a [u8],
    last: u8,
}

impl<'a> ControlSequence<'a> {
    pub(crate) const fn new(params: &'a vte::Params, intermediates: &'a [u8], last: u8) -> Self {
        Self {
            params,
            intermediates,
            last,
        }
    }

    /// The parameters: an omitted one is 0, one beyond 65,535 is 65,535. A parameter with
    /// sub-parameters (`38:2:1`) is no number, and given as 0.
    pub fn params(&self) -> impl Iterator<Item = u16> + 'a {
        self.params.iter().map(|param| match param {
            [number] => *number,
            _ => 0,
        })
    }

    /// The first parameter; 0 where it was omitted.
    #[must_use]
    pub fn first_param(&self) -> u16 {
        self.params().next().unwrap_or(0)
    }

    /// The private marker (`<`, `=`, `>` or `?`), where there is one, and the intermediate bytes.
    #[must_use]
    pub const fn intermediates(&self) -> &'a [u8] {
        self.intermediates
    }

    /// The final byte.
    #[must_use]
    pub const fn last(&self) -> u8 {
        self.last
    }
}

impl fmt::Debug for ControlSequence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlSequence")
            .field("params", self.params)
            .field("intermediates", &self.intermediates)
            .field("last", &char::from(self.last))
            .finish()
    }
}
