//! A table that is shown anew when it changes.

use std::future::Future;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::attach::window_size;
use crate::error::{CommandError, Outcome};
use crate::output::{Line, Out, Style};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// Where a screen begins, emptied.
const CLEAR: &[u8] = b"\x1b[H\x1b[J";

/// Looks, and shows what is seen where that changed, until ctrl-c. On a terminal it stays in
/// its place; elsewhere one follows the other.
///
/// # Errors
/// When it cannot be looked or shown.
pub(super) async fn watch<T, Fut>(
    look: impl Fn() -> Fut,
    lines: impl Fn(&T) -> Vec<Line>,
) -> Outcome
where
    Fut: Future<Output = Result<T, CommandError>>,
{
    let mut interrupt = signal(SignalKind::interrupt())
        .map_err(|error| CommandError::daemon(format!("no signal handler: {error}")))?;
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = Vec::new();
    loop {
        let seen = tokio::select! {
            seen = async { ticks.tick().await; look().await } => lines(&seen?),
            _ = interrupt.recv() => return Ok(0),
        };
        if seen != before {
            show(&seen)?;
            before = seen;
        }
    }
}

fn show(lines: &[Line]) -> Result<(), CommandError> {
    let mut out = Out::new();
    let mut room = usize::MAX;
    if Style::is_stdout_terminal() {
        out.raw(CLEAR)?;
        // The last row stays free: what is longer would scroll the headings away.
        room = window_size().map_or(room, |size| usize::from(size.rows).saturating_sub(1));
    }
    let mut shown = lines.iter().take(room);
    shown.try_for_each(|line| out.line(line.clone()))?;
    out.flush()
}
