//! Progress of one request: at most one notification a second however many waits the call
//! has under way, seconds as its measure, the last line of output as its message. Nothing is
//! queued for a client that reads slowly: while one notification is on its way there is no other.

use std::borrow::Cow;
use std::convert::Infallible;
use std::time::Duration;

use ostler_engine::Engine;
use ostler_model::{Caller, ExecutionId};
use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::last_line::last_line;

/// The shortest time between two notifications of one request, in milliseconds.
pub(super) const PROGRESS_MS: u64 = 1_000;
/// After this long without output a notification is sent as a sign of life, in milliseconds.
pub(super) const HEARTBEAT_MS: u64 = 5_000;

/// Which execution it is about; resolved only when there is something to send.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProgressTarget<'a> {
    Id(ExecutionId),
    Name(&'a str),
}

/// The progress notifications of one request.
#[derive(Debug)]
pub(super) struct ProgressReporter {
    token: ProgressToken,
    started_at: Instant,
    send_state: Mutex<SendState>,
}

#[derive(Debug)]
struct SendState {
    /// When the last notification was sent.
    last_sent: Instant,
    /// Whether one is still being sent.
    in_flight: bool,
}

/// A notification being sent; the next may follow when it is dropped.
struct SendGuard<'a>(&'a ProgressReporter);

impl Drop for SendGuard<'_> {
    fn drop(&mut self) {
        self.0.send_state.lock().in_flight = false;
    }
}

impl ProgressReporter {
    pub(super) fn new(token: ProgressToken) -> Self {
        let started_at = Instant::now();
        let send_state = Mutex::new(SendState {
            last_sent: started_at,
            in_flight: false,
        });
        Self {
            token,
            started_at,
            send_state,
        }
    }

    /// Reports the execution's progress until this is dropped.
    pub(super) async fn run(
        &self,
        engine: &Engine,
        caller: &Caller,
        peer: &Peer<RoleServer>,
        target: ProgressTarget<'_>,
    ) -> Infallible {
        let period = Duration::from_millis(PROGRESS_MS);
        let mut ticks = interval_at(self.started_at + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reported_end = 0;
        loop {
            ticks.tick().await;
            let id = match target {
                ProgressTarget::Id(id) => Cow::Owned(id.short()),
                ProgressTarget::Name(name) => Cow::Borrowed(name),
            };
            let Ok(info) = engine.info(caller, &id) else {
                // Ended with its session: the wait itself reports that.
                continue;
            };
            let Some(send_guard) = self.try_begin_send(info.output_end > reported_end) else {
                continue;
            };
            reported_end = info.output_end;
            let elapsed = self.started_at.elapsed().as_secs_f64();
            let mut params = ProgressNotificationParam::new(self.token.clone(), elapsed);
            params.message = last_line(engine, caller, &info).await;
            // A client that is gone ends the request; there is nothing to do about it here.
            let _sent = peer.notify_progress(params).await.is_ok();
            drop(send_guard);
        }
    }

    /// Whether it is time for a notification; the caller then sends it.
    fn try_begin_send(&self, is_new: bool) -> Option<SendGuard<'_>> {
        let wait = if is_new { PROGRESS_MS } else { HEARTBEAT_MS };
        let now = Instant::now();
        let mut send_state = self.send_state.lock();
        if send_state.in_flight
            || now.duration_since(send_state.last_sent) < Duration::from_millis(wait)
        {
            return None;
        }
        send_state.last_sent = now;
        send_state.in_flight = true;
        Some(SendGuard(self))
    }
}
