//! Verbs that do one thing to each of several names: an error about one does not keep the others
//! from it.

use crate::error::CommandError;

/// The exit code of such a verb.
#[derive(Debug, Default)]
pub(crate) struct BatchExit {
    code: u8,
}

impl BatchExit {
    /// Reports the error about one name, if there is one.
    ///
    /// # Errors
    /// When the reader of standard output closed it: the verb ends.
    pub(crate) fn record(&mut self, result: Result<(), CommandError>) -> Result<(), CommandError> {
        match result {
            Ok(()) => Ok(()),
            Err(CommandError::BrokenPipe) => Err(CommandError::BrokenPipe),
            Err(error) => {
                crate::print_error(&error);
                self.add_code(error.exit_code());
                Ok(())
            }
        }
    }

    /// Adds the exit code of a part whose errors are reported.
    pub(crate) const fn add_code(&mut self, code: u8) {
        if self.code == 0 {
            self.code = code;
        }
    }

    /// That of the first error; 0 if there was none.
    pub(crate) const fn code(&self) -> u8 {
        self.code
    }
}
