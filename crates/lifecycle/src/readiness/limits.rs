//! Limits of readiness: every count, size and time, with its unit.

use std::time::Duration;

use super::scan_schedule::ms;

/// A line is looked at as far as this; the rest of a longer one is dropped.
pub(super) const LINE_BYTES: usize = 4_096;
/// A line in evidence, details and warnings is told as far as this.
pub(super) const EXCERPT_CHARS: usize = 300;
/// Sockets kept in mind; more are not looked at.
pub(super) const SOCKETS_MAX: usize = 256;
/// Unix sockets kept in mind.
pub(super) const UNIX_MAX: usize = 64;
pub(super) const PORTS_MAX: usize = 64;
/// Printed addresses kept in mind.
pub(super) const PRINTED_MAX: usize = 32;
/// Signs and warnings kept.
pub(super) const SIGNS_MAX: usize = 16;
/// The path of a printed URL is kept as far as this; one with a longer path is no URL for people.
pub(super) const PATH_BYTES: usize = 1_024;

/// An unfinished line is taken for a line when nothing was added to it for so long.
pub(super) const PARTIAL: Duration = ms(200);
/// From the first sighting of a socket to the scan that confirms it.
pub(super) const CONFIRM: Duration = ms(8);
/// Scans of that kind in a row: programs that try one port after the other must not make us
/// look all the time.
pub(super) const CONFIRMS_MAX: u32 = 8;
/// A port in use is no failure when a port of the tree listens within this.
pub(super) const IN_USE: Duration = ms(1_500);
/// A server without a port that printed an error and then nothing for so long will not come.
pub(super) const SUSPECT: Duration = ms(5_000);
/// A ready line is waited for so long after the port answered.
pub(super) const HOLD_BACK: Duration = ms(20_000);
/// The port that was asked for may come so much later than another one.
pub(super) const REQUESTED_GRACE: Duration = ms(1_500);
/// The same for the port its kind takes by default.
pub(super) const DEFAULT_GRACE: Duration = ms(500);
/// The same for a port that was printed: `uvicorn --workers` prints 2.3 s early.
pub(super) const PRINTED_GRACE: Duration = ms(3_000);
/// A debugger's port that stands alone for so long is the main one.
pub(super) const DEBUG_ALONE: Duration = ms(5_000);
/// Several services are complete when no port was added for so long.
pub(super) const MULTI_SETTLE: Duration = ms(1_000);
/// Where something can be hoped for, alive counts as running only after this.
pub(super) const PATIENT_ALIVE: Duration = ms(10_000);
/// One that compiles first is running when it is alive and at rest for so long.
pub(super) const COMPILE_QUIET: Duration = ms(20_000);
/// A watcher that printed nothing for so long, after [`ALIVE_MS`](ostler_model::service::ALIVE_MS),
/// has come to rest.
pub(super) const WATCHER_QUIET: Duration = ms(1_000);
/// A server whose line was asked for may print it so much earlier than it listens.
pub(super) const LOG_GRACE: Duration = ms(10_000);
/// After ready, a port is gone when it is missing for so long: a reload closes it for less.
pub(super) const GONE: Duration = ms(1_000);
/// Printed addresses are looked for so long after ready.
pub(super) const SETTLE: Duration = ms(10_000);
/// The first retry of a probe.
pub(super) const RETRY: Duration = ms(100);
/// The longest time between two tries of a probe.
pub(super) const RETRY_MAX: Duration = ms(1_000);
/// Looks at health that must fail in a row unless told otherwise.
pub(super) const HEALTH_FAILURES: u32 = 3;
/// No health rule looks more often.
pub(super) const HEALTH_INTERVAL_MIN: Duration = ms(100);
/// A ready port is doubted at most so often: each doubt is a request in its log.
pub(super) const RECHECK_INTERVAL: Duration = ms(30_000);
/// How long a look at health may take.
pub(super) const HEALTH_TIMEOUT: Duration = ms(2_000);
/// How long a ready port that is doubted may take to answer.
pub(super) const RECHECK_TIMEOUT: Duration = ms(5_000);
/// Connections that nobody takes for so long make one doubt it.
pub(super) const BACKLOG_LIMIT: Duration = ms(3_000);
