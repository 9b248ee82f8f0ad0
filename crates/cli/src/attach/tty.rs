//! The local terminal: raw while the user types into a session, and restored on every exit path.

use std::io::{self, IsTerminal as _, Write as _};

use ostler_model::TermSize;
use rustix::termios::{self, OptionalActions, Termios};
use tokio::io::AsyncWriteExt as _;

use super::mode_tracker::ModeTracker;
use crate::error::{CommandError, output_failed};
use crate::output::{Style, StyledLine};

/// The width of a terminal that does not say it, in cells.
const NARROW_COLS: usize = 40;

/// The size of the local terminal, whichever standard stream is one; none where none is.
pub(crate) fn window_size() -> Option<TermSize> {
    let sizes = [
        termios::tcgetwinsize(rustix::stdio::stdout()),
        termios::tcgetwinsize(rustix::stdio::stdin()),
        termios::tcgetwinsize(rustix::stdio::stderr()),
    ];
    let size = sizes.into_iter().flatten().next()?;
    let size = TermSize {
        cols: size.ws_col,
        rows: size.ws_row,
    };
    (size.cols > 0 && size.rows > 0).then_some(size)
}

/// The name of this client for others: its terminal.
pub(crate) fn client_name() -> String {
    let at = termios::ttyname(rustix::stdio::stdin(), Vec::new()).ok();
    let at = at.and_then(|name| name.into_string().ok());
    at.map_or_else(
        || format!("ostler attach, process {}", std::process::id()),
        |name| format!("ostler attach on {}", name.trim_start_matches("/dev/")),
    )
}

/// Whether standard input is a terminal.
pub(crate) fn is_stdin_terminal() -> bool {
    io::stdin().is_terminal()
}

/// The terminal attributes of standard input before raw mode.
#[derive(Debug)]
struct RawMode(Termios);

impl RawMode {
    fn enter() -> Option<Self> {
        let before = termios::tcgetattr(rustix::stdio::stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self(before))
    }

    /// Sets raw mode again, after a shell restored its own settings while this process was stopped.
    fn reapply(&self) {
        let mut raw = self.0.clone();
        raw.make_raw();
        set(OptionalActions::Now, &raw);
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        set(OptionalActions::Drain, &self.0);
    }
}

fn set(when: OptionalActions, termios: &Termios) {
    if let Err(error) = termios::tcsetattr(rustix::stdio::stdin(), when, termios) {
        // A terminal that is gone needs no restoration.
        tracing::debug!(%error, "the terminal stays as it is");
    }
}

/// The local terminal while it shows a session. Dropping it, also by a panic, restores the
/// terminal.
#[derive(Debug)]
pub(crate) struct Tty {
    mode_tracker: ModeTracker,
    /// Whether standard output is a terminal.
    is_terminal: bool,
    raw: Option<RawMode>,
    is_open: bool,
}

impl Tty {
    /// Prepares the local terminal.
    pub(crate) fn open() -> Self {
        let mut window = Self {
            mode_tracker: ModeTracker::default(),
            is_terminal: Style::is_stdout_terminal(),
            raw: None,
            is_open: false,
        };
        window.enter();
        window
    }

    /// Prepares it again, after [`Tty::restore`].
    pub(crate) fn enter(&mut self) {
        if self.is_open {
            return;
        }
        self.is_open = true;
        if is_stdin_terminal() {
            self.raw = RawMode::enter();
        }
        if self.is_terminal {
            write_now(ModeTracker::SAVE_TITLE);
        }
    }

    /// Sets raw mode again, after this process was stopped by SIGSTOP.
    pub(crate) fn reapply_raw_mode(&self) {
        if let Some(raw) = &self.raw {
            raw.reapply();
        }
    }

    /// Whether standard output is a terminal.
    pub(crate) const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes output of the session.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub(crate) async fn show(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        if self.is_terminal {
            self.mode_tracker.feed(bytes);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "a window shows its session as it is"
        )]
        let mut stdout = tokio::io::stdout();
        let written = async {
            stdout.write_all(bytes).await?;
            stdout.flush().await
        };
        written.await.map_err(|error| output_failed(&error))
    }

    /// Shows a message to the user over the session: in the last row, until the screen is
    /// repainted.
    pub(crate) fn show_notice(&self, message: &str) {
        if !self.is_terminal {
            return crate::print_note(message);
        }
        // A longer one would wrap in the last row, and scroll the session away.
        let cols = window_size().map_or(NARROW_COLS, |size| usize::from(size.cols));
        let shown = StyledLine::from(format!(" ostler: {message} ").as_str());
        let shown = shown.shortened(cols.saturating_sub(1)).rendered();
        write_now(format!("\x1b7\x1b[999;1H\x1b[0;7m{shown}\x1b[0m\x1b[K\x1b8").as_bytes());
    }

    pub(crate) fn restore(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        if self.is_terminal {
            let alternate = self.mode_tracker.is_alternate();
            let mut bytes = self.mode_tracker.restore();
            if !alternate {
                bytes.extend_from_slice(b"\r\n");
            }
            write_now(&bytes);
        }
        drop(self.raw.take());
    }

    /// Restores the terminal after the session ended by itself: the cursor stays.
    pub(crate) fn close(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        if self.is_terminal {
            write_now(&self.mode_tracker.restore());
        }
        drop(self.raw.take());
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.restore();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a window shows its session as it is"
)]
fn write_now(bytes: &[u8]) {
    let mut stdout = io::stdout();
    // A terminal that is gone needs no restoration.
    drop(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}
