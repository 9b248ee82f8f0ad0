//! The monitor over a fake backend, in simulated time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ostler_backend::{Backend, UsageReading};
use ostler_model::{ExecutionId, Timestamp, UsagePeaks, UsageSample};
use ostler_testkit::fake_backend::{FakeBackend, SpawnBehavior};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use super::{UsageHistoryQuery, UsageListener, UsageMonitor};
use crate::hooks::ExecutionObserver;

const ALL: UsageHistoryQuery = UsageHistoryQuery {
    since: None,
    resolution: None,
    limit: usize::MAX,
};

/// The first sample is over, and the second one not due.
const FIRST: Duration = Duration::from_millis(1_200);

#[derive(Debug, Default)]
struct Recorded(Mutex<Vec<(ExecutionId, UsageSample)>>);

impl UsageListener for Recorded {
    fn observed(&self, execution: ExecutionId, sample: &UsageSample) {
        self.0.lock().push((execution, *sample));
    }
}

/// A monitor that runs, of executions that use one fixed amount.
struct MonitorFixture {
    _state: TempDir,
    backend: Arc<FakeBackend>,
    recorded: Arc<Recorded>,
    monitor: Arc<UsageMonitor>,
    closing: CancellationToken,
    task: JoinSet<()>,
}

impl MonitorFixture {
    fn new() -> Self {
        let state = TempDir::new().expect("a directory");
        let backend = Arc::new(FakeBackend::new(state.path(), |_| SpawnBehavior::Run));
        backend.set_usage(Some(UsageReading {
            at: Timestamp::now(),
            instant: Instant::now(),
            cpu_us: 0,
            memory_bytes: 8_192,
            read_bytes: Some(10),
            written_bytes: None,
            received_bytes: None,
            sent_bytes: None,
            processes: 2,
        }));
        let recorded = Arc::new(Recorded::default());
        let listener = Arc::clone(&recorded) as Arc<dyn UsageListener>;
        let monitor = UsageMonitor::new(Arc::clone(&backend) as Arc<dyn Backend>, vec![listener]);
        let closing = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(Arc::clone(&monitor).run(closing.clone()));
        Self {
            _state: state,
            backend,
            recorded,
            monitor,
            closing,
            task,
        }
    }

    /// Lets this much simulated time pass; returns how many samples were taken meanwhile.
    async fn pass(&self, time: Duration) -> usize {
        let before = self.recorded.0.lock().len();
        sleep_until(tokio::time::Instant::now() + time).await;
        self.recorded.0.lock().len() - before
    }

    async fn close(self) {
        self.closing.cancel();
        self.task.join_all().await;
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn samples_come_every_ten_seconds_and_every_second_while_watched() {
    let fixture = MonitorFixture::new();
    let id = ExecutionId::mint();
    fixture.monitor.attempt_started(id);
    assert_eq!(fixture.pass(FIRST).await, 1, "the first one");
    let in_a_minute = fixture.pass(seconds(60)).await;
    assert!((6..=7).contains(&in_a_minute), "{in_a_minute}");
    let mut watched = 0;
    for _ in 0..10 {
        fixture.monitor.watch(id);
        watched += fixture.pass(seconds(1)).await;
    }
    assert!((9..=11).contains(&watched), "{watched}");
    // The lease, and then as before.
    let in_a_minute = fixture.pass(seconds(60)).await;
    assert!((9..=12).contains(&in_a_minute), "{in_a_minute}");
    fixture.monitor.attempt_ended(id);
    assert_eq!(fixture.pass(seconds(60)).await, 0);
    let (of, sample) = fixture.recorded.0.lock().last().copied().expect("many");
    assert_eq!((of, sample.processes), (id, 2));
    assert_eq!(Some(sample), fixture.monitor.last_sample(id));
    fixture.close().await;
}

#[tokio::test(start_paused = true)]
async fn peaks_are_those_of_its_samples_and_of_nothing_where_there_were_none() {
    let fixture = MonitorFixture::new();
    let (sampled, short) = (ExecutionId::mint(), ExecutionId::mint());
    fixture.monitor.attempt_started(short);
    assert_eq!(fixture.monitor.finish(short), UsagePeaks::default());
    fixture.monitor.attempt_started(sampled);
    fixture.monitor.set_disk_bytes(sampled, 500);
    fixture.monitor.set_disk_bytes(sampled, 300);
    assert!(fixture.pass(seconds(30)).await > 1);
    let peaks = fixture.monitor.finish(sampled);
    let expected = UsagePeaks {
        cpu_percent: Some(0.0),
        memory_bytes: Some(8_192),
        disk_bytes: Some(500),
        read_bytes: Some(10),
        processes: Some(2),
        ..UsagePeaks::default()
    };
    assert_eq!(peaks, expected);
    assert_eq!(fixture.monitor.last_sample(short), None);
    fixture.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_that_ended_keep_their_history_until_they_are_removed() {
    let fixture = MonitorFixture::new();
    let ids: Vec<ExecutionId> = (0..66).map(|_| ExecutionId::mint()).collect();
    for id in &ids {
        fixture.monitor.attempt_started(*id);
    }
    assert_eq!(fixture.pass(FIRST).await, 66);
    for id in &ids {
        fixture.monitor.finish(*id);
        fixture.monitor.finish(*id);
    }
    let kept = |id| !fixture.monitor.history(id, ALL).points.is_empty();
    assert!(!kept(ids[0]) && !kept(ids[1]));
    assert!(ids[2..].iter().all(|id| kept(*id)));
    fixture.monitor.removed(ids[2]);
    assert!(!kept(ids[2]));
    fixture.close().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_no_sample() {
    let fixture = MonitorFixture::new();
    fixture.backend.set_usage(None);
    let id = ExecutionId::mint();
    fixture.monitor.attempt_started(id);
    assert_eq!(fixture.pass(seconds(60)).await, 0);
    assert_eq!(fixture.monitor.sample_now(id).await, None);
    assert_eq!(fixture.monitor.finish(id), UsagePeaks::default());
    fixture.close().await;
}
