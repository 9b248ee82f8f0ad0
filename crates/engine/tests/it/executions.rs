//! The engine over this machine's processes, without a zygote.

mod input;
mod quota;
mod restart;
mod retention;
mod waits;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::{
    CleanOutcome, Engine, Error, ListFilter, Settings, StartRequest, StdinRequest, StopRequest,
    WaitEnd, WaitFor,
};
use ostler_journal::retention::OutputPolicy;
use ostler_journal::{LineQuery, Pattern};
use ostler_model::event::TrimReason;
use ostler_model::status::ProcessStatus;
use ostler_model::{
    Caller, Cursor, ErrorCode, Event, ExecutionId, Scope, SessionName, Signal, StreamName,
    TerminationCause,
};
use tempfile::TempDir;

use crate::test_engine::{PATIENCE, TestEngine, caller, open_engine};

impl TestEngine {
    fn lines(&self, id: &str, stream: StreamName) -> Vec<String> {
        let journal = self.engine.journal(&caller("one"), id).expect("known");
        let query = LineQuery {
            streams: ostler_journal::StreamSet::only(stream),
            unfinished: ostler_journal::OpenLineMode::Final,
            ..LineQuery::default()
        };
        let page = journal.lines(&query).expect("readable");
        let text =
            |line: ostler_journal::JournalLine| String::from_utf8_lossy(&line.bytes).into_owned();
        page.lines.into_iter().map(text).collect()
    }
}

fn argv(words: &[&str]) -> StartRequest {
    StartRequest::argv(words.iter().copied(), "/tmp")
}

fn sh(script: &str) -> StartRequest {
    argv(&["sh", "-c", script])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_and_its_answer_has_everything() {
    let fixture = TestEngine::new().await;
    let waited = fixture
        .engine
        .run(
            &caller("one"),
            sh("echo out; echo err >&2; exit 3"),
            Some(PATIENCE),
        )
        .await
        .expect("it runs");
    assert_eq!(waited.end, WaitEnd::Exit);
    let info = waited.info;
    let ending = info.state.ending.clone().expect("it ended");
    assert_eq!(
        (ending.cause, ending.code),
        (TerminationCause::Exited, Some(3))
    );
    assert_eq!(info.status().process, ProcessStatus::Failed);
    assert_eq!(info.output_end, 8);
    assert!(info.state.started_at.is_some() && info.state.ended_at.is_some());
    assert_eq!(info.error_message().as_deref(), Some("exit code 3"));
    let id = info.id.short();
    assert_eq!(fixture.lines(&id, StreamName::Stdout), ["out"]);
    assert_eq!(fixture.lines(&id, StreamName::Stderr), ["err"]);
    fixture.engine.shutdown().await;
}

#[tokio::test]
async fn a_single_thread_is_enough() {
    let fixture = TestEngine::new().await;
    let caller = caller("one");
    let waited = fixture.engine.run(&caller, argv(&["true"]), Some(PATIENCE));
    assert_eq!(waited.await.expect("it runs").end, WaitEnd::Exit);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_reported_with_its_reason_and_ends_the_whole_tree() {
    let fixture = TestEngine::new().await;
    let request = sh("trap '' TERM; echo deaf; sleep 300 & setsid sleep 300 & wait; sleep 300");
    let info = fixture
        .engine
        .start(&caller("one"), request)
        .await
        .expect("started");
    let id = info.id.to_string();
    let deaf = WaitFor::Pattern(Pattern::new("deaf").expect("a pattern"));
    let waited = fixture.engine.wait(&caller("one"), &id, &deaf, None).await;
    waited.expect("it says so");
    assert_eq!(info.status().process, ProcessStatus::Running);
    let began = Instant::now();
    let stopped = fixture
        .engine
        .stop(
            &caller("one"),
            &id,
            StopRequest {
                reason: Some("enough".to_owned()),
                ..StopRequest::default()
            },
        )
        .await
        .expect("it stops");
    assert!(began.elapsed() < Duration::from_secs(5));
    let ending = stopped.state.ending.expect("it ended");
    let reason = Some("enough".to_owned());
    assert_eq!(ending.cause, TerminationCause::Stopped { reason });
    assert_eq!(ending.signal, Some(Signal::KILL));
    assert_eq!(stopped.survivors, Vec::<u32>::new());
    let again = fixture
        .engine
        .stop(&caller("one"), &id, StopRequest::default())
        .await;
    assert!(again.is_ok(), "stopping what has ended changes nothing");
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_it_as_timed_out() {
    let fixture = TestEngine::new().await;
    let mut request = sh("echo before; sleep 300");
    request.options.timeout = Some(Duration::from_millis(200));
    let waited = fixture
        .engine
        .run(&caller("one"), request, Some(PATIENCE))
        .await
        .expect("it ran");
    let info = waited.info;
    assert_eq!(info.status().process, ProcessStatus::Terminated);
    assert!(matches!(
        info.state.ending.as_ref().expect("ended").cause,
        TerminationCause::TimedOut { .. }
    ));
    assert_eq!(
        fixture.lines(&info.id.short(), StreamName::Stdout),
        ["before"]
    );
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_is_not_a_stop_is_reported_as_such() {
    let fixture = TestEngine::new().await;
    let info = fixture.start(argv(&["sleep", "300"])).await;
    let id = info.id.short();
    fixture
        .engine
        .signal(&caller("one"), &id, Signal::HUP)
        .await
        .expect("sent");
    let info = fixture.wait_end(&id).await;
    let ending = info.state.ending.clone().expect("ended");
    assert_eq!(
        (ending.cause, ending.signal),
        (TerminationCause::Signaled, Some(Signal::HUP))
    );
    assert_eq!(info.status().process, ProcessStatus::Failed);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_the_kernel_refuses_is_an_error_with_the_execution_listed() {
    let fixture = TestEngine::new().await;
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("garbage");
    std::fs::write(&file, [0x7f, b'E', b'L', b'F', 0, 0]).expect("a file");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("mode");
    let path = file.to_string_lossy().into_owned();
    let error = fixture
        .engine
        .start(&caller("one"), argv(&[&path]))
        .await
        .expect_err("no program");
    assert_eq!(error.code(), ErrorCode::CommandExecution, "{error}");
    let error = fixture
        .engine
        .run(&caller("one"), argv(&[&path]), None)
        .await
        .expect_err("no program");
    assert!(matches!(error, Error::SpawnFailed { .. }), "{error}");
    let listed = fixture.engine.list(&caller("one"), &ListFilter::default());
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0].status().process, ProcessStatus::Error);
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_newest_first_and_filtered() {
    let fixture = TestEngine::new().await;
    let mut ids = Vec::new();
    for labels in [&["a"][..], &["a", "b"], &["b"]] {
        let mut request = argv(&["true"]);
        request.options.labels = labels.iter().map(|it| (*it).to_owned()).collect();
        let waited = fixture
            .engine
            .run(&caller("one"), request, Some(PATIENCE))
            .await
            .expect("ran");
        ids.push(waited.info.id);
    }
    let running = fixture.start(argv(&["sleep", "300"])).await;
    let list = |filter: ListFilter| -> Vec<_> {
        fixture
            .engine
            .list(&caller("one"), &filter)
            .into_iter()
            .map(|it| it.id)
            .collect()
    };
    assert_eq!(
        list(ListFilter::default()),
        [running.id, ids[2], ids[1], ids[0]]
    );
    let labels = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(
        list(ListFilter {
            labels,
            ..ListFilter::default()
        }),
        [ids[1]]
    );
    let status = Some(ProcessStatus::Running);
    assert_eq!(
        list(ListFilter {
            status,
            ..ListFilter::default()
        }),
        [running.id]
    );
    let limit = Some(2);
    assert_eq!(
        list(ListFilter {
            limit,
            ..ListFilter::default()
        }),
        [running.id, ids[2]]
    );
    fixture.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_do_not_see_each_other() {
    let fixture = TestEngine::new().await;
    let info = fixture.start(argv(&["sleep", "300"])).await;
    let id = info.id.short();
    let foreign = fixture
        .engine
        .info(&caller("two"), &id)
        .expect_err("foreign");
    let unknown = fixture
        .engine
        .info(&caller("two"), "zzzzzzzz")
        .expect_err("unknown");
    let malformed = fixture
        .engine
        .info(&caller("two"), "nonsense!")
        .expect_err("malformed");
    for error in [foreign, unknown, malformed] {
        assert_eq!(error.to_string(), "Process not found or access denied");
        assert_eq!(error.code(), ErrorCode::ProcessNotFound);
    }
    assert!(
        fixture
            .engine
            .list(&caller("two"), &ListFilter::default())
            .is_empty()
    );
    let outcome = fixture
        .engine
        .clean(&caller("two"), std::slice::from_ref(&id))
        .await
        .expect("a list");
    assert_eq!(outcome, [(id, CleanOutcome::NotFound)]);
    let empty = fixture.engine.info(&caller("two"), "").expect_err("empty");
    assert_eq!(empty.code(), ErrorCode::Value);
    fixture.engine.shutdown().await;
}
