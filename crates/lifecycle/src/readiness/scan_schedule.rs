//! When to scan the listening sockets.

use std::time::Duration;

pub(super) const fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// The interval of scans of a service that is not ready, by its age.
const WHILE_STARTING: [(Duration, Duration); 4] = [
    (YOUNG, ms(20)),
    (ms(10_000), FIRST_INTERVAL),
    (ms(300_000), ms(250)),
    (Duration::MAX, ms(1_000)),
];
/// The interval until the age of ten seconds: with the scan itself, less than the 50 ms that a server
/// may wait for until it is known to be ready.
const FIRST_INTERVAL: Duration = ms(40);
/// The interval of scans of a ready service.
const WHILE_READY: Duration = ms(2_000);
/// The interval for a service without a readiness rule, or of which no port is expected, after its
/// first minute; before, a longer one.
const WHILE_RUNNING: [(Duration, Duration); 3] = [
    (ms(10_000), FIRST_INTERVAL),
    (ms(60_000), ms(250)),
    (Duration::MAX, WHILE_READY),
];
/// When a service without output is scanned first.
const FIRST_SCAN: Duration = ms(20);
/// The delay of a scan after output, and after a failed probe: most servers that print have a socket
/// by then, and those that do not are scanned again within the interval.
const AFTER_OUTPUT: Duration = ms(5);
/// The shortest interval for a service that is not ready and prints all the time.
const APART_STARTING: Duration = ms(25);
/// The same while it is younger than [`YOUNG`]: most servers print and listen at the same time.
const APART_YOUNG: Duration = ms(10);
const YOUNG: Duration = ms(2_000);
/// The delay of a scan after output of a ready service.
const AFTER_OUTPUT_READY: Duration = ms(100);
/// The shortest interval for a ready service that prints all the time.
const APART_READY: Duration = ms(500);

/// How often a service is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanPace {
    /// A port may open at any time.
    Starting,
    /// A port may open, or not.
    Running,
    /// The service is ready and healthy.
    Ready,
}

impl ScanPace {
    /// The interval to the next scan.
    pub(super) fn interval(self, elapsed: Duration) -> Duration {
        let interval_in = |table: &[(Duration, Duration)]| {
            let row = table.iter().find(|(until, _)| elapsed < *until);
            row.map_or(WHILE_READY, |(_, interval)| *interval)
        };
        match self {
            Self::Starting => interval_in(&WHILE_STARTING),
            Self::Running => interval_in(&WHILE_RUNNING),
            Self::Ready => WHILE_READY,
        }
    }

    /// When to scan after output at `output`, the last scan having been at `scan`.
    pub(super) fn after_output(self, scan: Duration, output: Duration) -> Duration {
        match self {
            Self::Starting | Self::Running => {
                let apart = if scan < YOUNG {
                    APART_YOUNG
                } else {
                    APART_STARTING
                };
                (output + AFTER_OUTPUT).max(scan + apart)
            }
            Self::Ready => (output + AFTER_OUTPUT_READY).max(scan + APART_READY),
        }
    }
}

/// When to scan first, where the last output was at `output`.
pub(super) fn first_scan(output: Option<Duration>) -> Duration {
    output.map_or(FIRST_SCAN, |it| FIRST_SCAN.min(it + AFTER_OUTPUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_with_age() {
        for (pace, at, interval) in [
            (ScanPace::Starting, 0, 20),
            (ScanPace::Starting, 1_999, 20),
            (ScanPace::Starting, 2_000, 40),
            (ScanPace::Starting, 9_999, 40),
            (ScanPace::Starting, 10_000, 250),
            (ScanPace::Starting, 300_000, 1_000),
            (ScanPace::Running, 0, 40),
            (ScanPace::Running, 10_000, 250),
            (ScanPace::Running, 60_000, 2_000),
            (ScanPace::Ready, 0, 2_000),
        ] {
            assert_eq!(pace.interval(ms(at)), ms(interval), "{pace:?} {at}");
        }
        assert_eq!(first_scan(None), ms(20));
        assert_eq!(first_scan(Some(ms(2))), ms(7));
        assert_eq!(first_scan(Some(ms(19))), ms(20));
        assert_eq!(ScanPace::Starting.after_output(ms(100), ms(101)), ms(110));
        assert_eq!(
            ScanPace::Starting.after_output(ms(2_000), ms(2_001)),
            ms(2_025)
        );
        assert_eq!(ScanPace::Starting.after_output(ms(100), ms(900)), ms(905));
        assert_eq!(ScanPace::Ready.after_output(ms(100), ms(101)), ms(600));
        assert_eq!(ScanPace::Ready.after_output(ms(100), ms(900)), ms(1_000));
    }
}
