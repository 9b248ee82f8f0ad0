//! Limits of readiness: every count, size and time, with its unit.

use std::time::Duration;

use ostler_model::service::ALIVE_MS;

use super::scan_schedule::ms;

/// The most bytes of a line that are analysed at once: a longer line is analysed in pieces.
pub(super) const LINE_BYTES: usize = 4_096;
/// How much of a piece is repeated in the next one: a pattern matches this much across pieces.
pub(super) const OVERLAP_BYTES: usize = 512;
/// The most characters of a line in evidence, details and warnings.
pub(super) const EXCERPT_CHARS: usize = 300;
/// The most tracked sockets; further ones are ignored.
pub(super) const SOCKETS_MAX: usize = 256;
/// The most tracked unix sockets.
pub(super) const UNIX_MAX: usize = 64;
pub(super) const PORTS_MAX: usize = 64;
/// The most printed addresses.
pub(super) const PRINTED_MAX: usize = 32;
/// The most signals and warnings kept.
pub(super) const SIGNS_MAX: usize = 16;
/// The longest path of a printed URL; a URL with a longer path is not meant for people.
pub(super) const PATH_BYTES: usize = 1_024;

/// An unfinished line counts as a line when nothing was added to it for this long.
pub(super) const PARTIAL: Duration = ms(200);
/// From the first scan that shows a socket to the scan that confirms it.
pub(super) const CONFIRM: Duration = ms(8);
/// The most confirming scans in a row: programs that try one port after the other must not cause
/// continuous scanning.
pub(super) const CONFIRMS_MAX: u32 = 8;
/// A port in use is no failure when a port of the tree listens within this.
pub(super) const IN_USE: Duration = ms(1_500);
/// A server without a port that printed an error and then nothing for this long has failed.
pub(super) const SUSPECT: Duration = ms(5_000);
/// How long a ready line is awaited after the port answered.
pub(super) const HOLD_BACK: Duration = ms(20_000);
/// How much later than another port the requested port may open.
pub(super) const REQUESTED_GRACE: Duration = ms(1_500);
/// The same for the default port of its kind.
pub(super) const DEFAULT_GRACE: Duration = ms(500);
/// The same for a printed port: `uvicorn --workers` prints 2.3 s early.
pub(super) const PRINTED_GRACE: Duration = ms(3_000);
/// A debugger's port that is the only one for this long is the main one.
pub(super) const DEBUG_ALONE: Duration = ms(5_000);
/// A service with several ports is complete when no port was added for this long.
pub(super) const MULTI_SETTLE: Duration = ms(1_000);
/// Where a port may still open, alive counts as running only after this.
pub(super) const PATIENT_ALIVE: Duration = ms(10_000);
/// A service that compiles first is running when it is alive and idle for this long.
pub(super) const COMPILE_QUIET: Duration = ms(20_000);
/// A watcher that printed nothing for this long, after
/// [`ALIVE_MS`](ostler_model::service::ALIVE_MS), is idle.
pub(super) const WATCHER_QUIET: Duration = ms(1_000);
/// How much earlier than it listens a server may print its ready line.
pub(super) const LOG_GRACE: Duration = ms(10_000);
/// After ready, a port is gone when it is missing for this long: a reload closes it for less.
pub(super) const GONE: Duration = ms(1_000);
/// How long after ready printed addresses are still collected.
pub(super) const SETTLE: Duration = ms(10_000);
/// The first retry of a probe.
pub(super) const RETRY: Duration = ms(100);
/// The longest time between two tries of a probe.
pub(super) const RETRY_MAX: Duration = ms(1_000);
/// Health checks that must fail in a row, by default.
pub(super) const HEALTH_FAILURES: u32 = 3;
/// The shortest interval of a health rule.
pub(super) const HEALTH_INTERVAL_MIN: Duration = ms(100);
/// The shortest time between two rechecks of a ready port: each is a request in its log.
pub(super) const RECHECK_INTERVAL: Duration = ms(30_000);
/// The timeout of a health check, and of one try of a health URL before ready.
pub(super) const HEALTH_TIMEOUT: Duration = ms(2_000);
/// The timeout of a recheck of a ready port.
pub(super) const RECHECK_TIMEOUT: Duration = ms(5_000);
/// Connections that stay in the accept queue for this long cause a recheck.
pub(super) const BACKLOG_LIMIT: Duration = ms(3_000);
/// How long alive means running.
pub(super) const ALIVE: Duration = ms(ALIVE_MS);
