//! Copies bytes both ways between two connections, until both directions have ended.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The buffer of each direction of a connection, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;
/// The idle timeout of a connection in both directions, in milliseconds.
const IDLE_MS: u64 = 3_600_000;
/// The idle timeout once one side has shut down its writing, in milliseconds.
const HALF_CLOSED_IDLE_MS: u64 = 600_000;

/// How many bytes were copied in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ByteCounts {
    pub(crate) out: u64,
    pub(crate) back: u64,
}

/// Counts the connections whose inside may still have sent something that is not passed on.
#[derive(Debug, Default)]
pub(crate) struct OpenSenders {
    count: Cell<usize>,
    closed: Notify,
}

impl OpenSenders {
    fn open(&self) -> OpenSender<'_> {
        self.count.set(self.count.get() + 1);
        OpenSender(self)
    }

    /// Waits until everything that the inside of each connection sent is passed on, and its end.
    pub(crate) async fn drained(&self) {
        while self.count.get() > 0 {
            self.closed.notified().await;
        }
    }
}

/// A connection whose inside may send. Dropped when its end is passed on.
struct OpenSender<'a>(&'a OpenSenders);

impl Drop for OpenSender<'_> {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        self.0.closed.notify_one();
    }
}

/// State shared by both directions.
struct RelayActivity {
    active: Cell<Instant>,
    half_closed: Cell<bool>,
}

/// Carries bytes from `inside` to `outside` and back. The end of one direction is passed on
/// and leaves the other; an error or idleness ends both, abruptly as it came.
pub(crate) async fn relay(
    mut inside: TcpStream,
    mut outside: TcpStream,
    senders: &OpenSenders,
) -> ByteCounts {
    let sender = senders.open();
    // Small writes must not be delayed; the endpoints do that themselves if needed.
    let _fast = (inside.set_nodelay(true), outside.set_nodelay(true));
    let meter = RelayActivity {
        active: Cell::new(Instant::now()),
        half_closed: Cell::new(false),
    };
    let (out, back) = (Cell::new(0), Cell::new(0));
    let completed = {
        let (inside_read, inside_write) = inside.split();
        let (outside_read, outside_write) = outside.split();
        let from_inside = async {
            let _sender = sender;
            pump(inside_read, outside_write, &out, &meter).await
        };
        let both = async {
            tokio::try_join!(from_inside, pump(outside_read, inside_write, &back, &meter),)
        };
        tokio::select! {
            ended = both => ended.is_ok(),
            () = idle(&meter) => false,
        }
    };
    if !completed {
        reset(&inside);
        reset(&outside);
    }
    ByteCounts {
        out: out.get(),
        back: back.get(),
    }
}

/// Has a connection closed by a reset, which the other end sees at once and as a failure.
pub(crate) fn reset(stream: &TcpStream) {
    let _set = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    count_total: &Cell<u64>,
    meter: &RelayActivity,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        meter.active.set(Instant::now());
        if count == 0 {
            meter.half_closed.set(true);
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
        count_total.set(count_total.get() + u64::try_from(count).unwrap_or(0));
    }
}

/// Returns after the idle timeout.
async fn idle(meter: &RelayActivity) {
    loop {
        let limit = if meter.half_closed.get() {
            HALF_CLOSED_IDLE_MS
        } else {
            IDLE_MS
        };
        let until = meter.active.get() + Duration::from_millis(limit);
        if until <= Instant::now() {
            return;
        }
        // Half closing shortens the timeout, so the activity is checked that often.
        let recheck_at = Instant::now() + Duration::from_millis(HALF_CLOSED_IDLE_MS);
        tokio::time::sleep_until(until.min(recheck_at)).await;
    }
}
