//! Alerts, as an embedder receives them.

use std::time::Duration;

use ostler::{
    AlertKind, AlertState, AlertThresholds, Engine, StartRequest, StopRequest, ZygoteConfig,
};
use tokio::sync::broadcast::error::TryRecvError;

#[tokio::test(flavor = "multi_thread")]
async fn an_embedder_is_told_once_of_what_runs_longer_than_its_start_says() {
    let state = tempfile::TempDir::new().expect("a directory");
    let opened = Engine::open(state.path(), ZygoteConfig::InProcess).await;
    let engine = opened.expect("an engine");
    let me = engine.caller();
    let mut alerts = engine.subscribe_alerts();
    let quiet = StartRequest::argv(["sleep", "600"], "/");
    let quiet = engine.start(&me, quiet).await.expect("started").id;
    let mut request = StartRequest::argv(["sleep", "600"], "/");
    request.options.alerts = AlertThresholds {
        run_time: Some(Duration::from_millis(1)),
        ..AlertThresholds::default()
    };
    let watched = engine.start(&me, request).await.expect("started").id;
    for id in [quiet, watched] {
        let watching = engine.watch_usage(&me, &id.to_string());
        watching.expect("it is sampled each second");
    }
    let notice = alerts.recv().await.expect("an alert");
    assert_eq!(
        (notice.execution, notice.kind, notice.state),
        (watched, AlertKind::RunTime, AlertState::Raised)
    );
    assert_eq!((notice.threshold, &*notice.command), (1, "sleep 600"));
    assert_eq!(notice.owner.principal, me.owner.principal);
    for id in [quiet, watched] {
        let stop = StopRequest {
            force: true,
            ..StopRequest::default()
        };
        let stopped = engine.stop(&me, &id.to_string(), stop).await;
        stopped.expect("it ends");
    }
    engine.shutdown().await;
    assert_eq!(alerts.try_recv(), Err(TryRecvError::Empty));
}
