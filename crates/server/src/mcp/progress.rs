//! Progress of one request (F5): at most one notification a second however many waits the call
//! has under way, seconds as its measure, the last line of output as its message. Nothing is
//! queued for a client that reads slowly: while one notification is on its way there is no other.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ostler_model::ExecutionId;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::context::Call;
use super::glance::last_line;

/// The shortest time between two notifications of one request, in milliseconds.
pub(super) const PROGRESS_MS: u64 = 1_000;
/// After this long without output a notification says that the command lives, in milliseconds.
pub(super) const HEARTBEAT_MS: u64 = 5_000;

/// Which execution it is about; spelled out only when there is something to tell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of<'a> {
    Id(ExecutionId),
    Name(&'a str),
}

/// What a request's client has been told.
#[derive(Debug)]
pub(super) struct Meter {
    token: ProgressToken,
    begun: Instant,
    told: Mutex<Told>,
}

#[derive(Debug)]
struct Told {
    /// When the last notification went out.
    at: Instant,
    /// Whether it is still on its way.
    on_its_way: bool,
}

/// One notification on its way; dropped, the next may follow.
struct Sending<'a>(&'a Meter);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.lock().on_its_way = false;
    }
}

impl Meter {
    pub(super) fn new(token: ProgressToken) -> Self {
        let begun = Instant::now();
        let told = Mutex::new(Told {
            at: begun,
            on_its_way: false,
        });
        Self { token, begun, told }
    }

    /// Tells the client how the execution comes on, until this is dropped.
    pub(super) async fn tell(
        &self,
        call: Call<'_>,
        peer: &Peer<RoleServer>,
        of: Of<'_>,
    ) -> Infallible {
        let every = Duration::from_millis(PROGRESS_MS);
        let mut ticks = interval_at(self.begun + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = 0;
        loop {
            ticks.tick().await;
            let id = match of {
                Of::Id(id) => Cow::Owned(id.short()),
                Of::Name(name) => Cow::Borrowed(name),
            };
            let Ok(info) = call.info(&id) else {
                // Gone with its session: the wait itself will say so.
                continue;
            };
            let Some(sending) = self.due(info.output_end > seen) else {
                continue;
            };
            seen = info.output_end;
            let elapsed = self.begun.elapsed().as_secs_f64();
            let mut told = ProgressNotificationParam::new(self.token.clone(), elapsed);
            told.message = last_line(call.engine, call.caller, &info).await;
            // A client that is gone ends the request; nothing to do about it here.
            let _sent = peer.notify_progress(told).await.is_ok();
            drop(sending);
        }
    }

    /// Whether it is time for a notification; the caller then sends it.
    fn due(&self, is_new: bool) -> Option<Sending<'_>> {
        let wait = if is_new { PROGRESS_MS } else { HEARTBEAT_MS };
        let now = Instant::now();
        let mut told = self.lock();
        if told.on_its_way || now.duration_since(told.at) < Duration::from_millis(wait) {
            return None;
        }
        told.at = now;
        told.on_its_way = true;
        Some(Sending(self))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
