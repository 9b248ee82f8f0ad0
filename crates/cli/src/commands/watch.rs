//! A table that is redrawn when it changes.

use std::future::Future;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::attach::window_size;
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, Style, StyledLine};
use crate::process_env::ProcessEnv;

/// The interval between two updates.
const INTERVAL: Duration = Duration::from_secs(1);
/// Moves the cursor home and clears the screen.
const CLEAR: &[u8] = b"\x1b[H\x1b[J";

/// Fetches and redraws on a change, until ctrl-c. On a terminal that moves its cursor the table is
/// redrawn in place; elsewhere tables follow each other.
///
/// # Errors
/// When fetching or printing fails.
pub(super) async fn watch<T, Fut>(
    env: &ProcessEnv,
    fetch: impl Fn() -> Fut,
    lines: impl Fn(&T) -> Vec<StyledLine>,
) -> CommandResult
where
    Fut: Future<Output = Result<T, CommandError>>,
{
    let mut interrupt = signal(SignalKind::interrupt())
        .map_err(|error| CommandError::daemon(format!("no signal handler: {error}")))?;
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let is_screen = Style::is_stdout_screen(env);
    let mut previous = Vec::new();
    loop {
        let current = tokio::select! {
            seen = async { ticks.tick().await; fetch().await } => lines(&seen?),
            _ = interrupt.recv() => return Ok(0),
        };
        if current != previous {
            redraw_screen(&current, is_screen)?;
            previous = current;
        }
    }
}

fn redraw_screen(lines: &[StyledLine], is_screen: bool) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    let mut room = usize::MAX;
    if is_screen {
        out.write_raw(CLEAR)?;
        // The last row stays free: a longer table would scroll the headings away.
        room = window_size().map_or(room, |size| usize::from(size.rows).saturating_sub(1));
    }
    let mut visible = lines.iter().take(room);
    visible.try_for_each(|line| out.write_line(line.clone()))?;
    out.flush()
}
