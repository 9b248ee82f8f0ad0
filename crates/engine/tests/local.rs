//! The engine over this machine's processes, without a keeper.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ostler_engine::{
    CleanOutcome, Engine, Error, ListFilter, Settings, StartRequest, StdinRequest, StopRequest,
    WaitEnd, WaitFor,
};
use ostler_journal::retention::OutputPolicy;
use ostler_journal::{LineQuery, Pattern};
use ostler_model::event::TrimReason;
use ostler_model::status::ProcessStatus;
use ostler_model::{
    Caller, Cause, Cursor, ErrorCode, Event, Owner, Principal, Scope, SessionName, Signal,
    StreamName,
};
use ostler_process::{Keeper, LocalPlace};
use tempfile::TempDir;

/// No answer of a test takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

struct Lab {
    engine: Engine,
    state: TempDir,
}

impl Lab {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let state = TempDir::new().expect("a directory");
        let engine = open(state.path(), change).await;
        Self { engine, state }
    }

    async fn start(&self, words: &[&str]) -> ostler_engine::Info {
        self.engine
            .start(&caller("one"), argv(words))
            .await
            .expect("it starts")
    }

    async fn ended(&self, id: &str) -> ostler_engine::Info {
        let waited = self
            .engine
            .wait(&caller("one"), id, &WaitFor::Exit, Some(PATIENCE))
            .await
            .expect("it is known");
        assert_eq!(waited.why, WaitEnd::Exit);
        waited.info
    }

    fn lines(&self, id: &str, stream: StreamName) -> Vec<String> {
        let journal = self.engine.journal(&caller("one"), id).expect("known");
        let query = LineQuery {
            streams: ostler_journal::StreamSet::only(stream),
            unfinished: ostler_journal::Unfinished::Final,
            ..LineQuery::default()
        };
        let page = journal.lines(&query).expect("readable");
        let text = |line: ostler_journal::Line| String::from_utf8_lossy(&line.bytes).into_owned();
        page.lines.into_iter().map(text).collect()
    }
}

async fn open(state: &std::path::Path, change: impl FnOnce(&mut Settings)) -> Engine {
    let place = LocalPlace::open(state, Keeper::None)
        .await
        .expect("a place");
    let mut settings = Settings::new(state);
    settings.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    settings.grace = Duration::from_millis(500);
    change(&mut settings);
    Engine::open(settings, Arc::new(place))
        .await
        .expect("an engine")
}

fn caller(session: &str) -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: None,
            session: Some(SessionName(session.to_owned())),
            task: None,
        },
        scope: Scope::Session,
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
    let lab = Lab::new().await;
    let waited = lab
        .engine
        .run(
            &caller("one"),
            sh("echo out; echo err >&2; exit 3"),
            Some(PATIENCE),
        )
        .await
        .expect("it runs");
    assert_eq!(waited.why, WaitEnd::Exit);
    let info = waited.info;
    let ending = info.state.ending.clone().expect("it ended");
    assert_eq!((ending.cause, ending.code), (Cause::Exited, Some(3)));
    assert_eq!(info.status().process, ProcessStatus::Failed);
    assert_eq!(info.output_end, 8);
    assert!(info.state.started_at.is_some() && info.state.ended_at.is_some());
    assert_eq!(info.error_message().as_deref(), Some("exit code 3"));
    let id = info.id.short();
    assert_eq!(lab.lines(&id, StreamName::Stdout), ["out"]);
    assert_eq!(lab.lines(&id, StreamName::Stderr), ["err"]);
    lab.engine.shutdown().await;
}

#[tokio::test]
async fn a_single_thread_is_enough() {
    let lab = Lab::new().await;
    let caller = caller("one");
    let waited = lab.engine.run(&caller, argv(&["true"]), Some(PATIENCE));
    assert_eq!(waited.await.expect("it runs").why, WaitEnd::Exit);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_told_with_its_reason_and_ends_the_whole_tree() {
    let lab = Lab::new().await;
    let request = sh("trap '' TERM; echo deaf; sleep 300 & setsid sleep 300 & wait; sleep 300");
    let info = lab
        .engine
        .start(&caller("one"), request)
        .await
        .expect("started");
    let id = info.id.to_string();
    let deaf = WaitFor::Pattern(Pattern::new("deaf").expect("a pattern"));
    let waited = lab.engine.wait(&caller("one"), &id, &deaf, None).await;
    waited.expect("it says so");
    assert_eq!(info.status().process, ProcessStatus::Running);
    let began = Instant::now();
    let stopped = lab
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
    assert_eq!(ending.cause, Cause::Stopped { reason });
    assert_eq!(ending.signal, Some(Signal::KILL));
    assert_eq!(stopped.survivors, Vec::<u32>::new());
    let again = lab
        .engine
        .stop(&caller("one"), &id, StopRequest::default())
        .await;
    assert!(again.is_ok(), "stopping what has ended changes nothing");
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_it_as_timed_out() {
    let lab = Lab::new().await;
    let mut request = sh("echo before; sleep 300");
    request.timeout = Some(Duration::from_millis(200));
    let waited = lab
        .engine
        .run(&caller("one"), request, Some(PATIENCE))
        .await
        .expect("it ran");
    let info = waited.info;
    assert_eq!(info.status().process, ProcessStatus::Terminated);
    assert!(matches!(
        info.state.ending.as_ref().expect("ended").cause,
        Cause::TimedOut { .. }
    ));
    assert_eq!(lab.lines(&info.id.short(), StreamName::Stdout), ["before"]);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_runs_out_kills_nothing() {
    let lab = Lab::new().await;
    let waited = lab
        .engine
        .run(
            &caller("one"),
            argv(&["sleep", "300"]),
            Some(Duration::from_millis(50)),
        )
        .await
        .expect("it runs");
    assert_eq!(waited.why, WaitEnd::AtMost);
    let id = waited.info.id.short();
    let info = lab.engine.info(&caller("one"), &id).expect("still known");
    assert_eq!(info.status().process, ProcessStatus::Running);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_run_is_cancelled() {
    let lab = Lab::new().await;
    let mut activity = lab.engine.activity();
    let mut notices = lab.engine.subscribe();
    {
        let caller = caller("one");
        let request = argv(&["sleep", "300"]);
        let run = lab.engine.run(&caller, request, None);
        tokio::pin!(run);
        tokio::select! {
            _ = &mut run => panic!("sleep does not end"),
            seen = activity.wait_for(|running| *running == 1) => drop(seen.expect("counted")),
        }
    }
    let none = activity.wait_for(|running| *running == 0);
    tokio::time::timeout(PATIENCE, none)
        .await
        .expect("cancelled")
        .expect("counted");
    let mut cancelled = false;
    while let Ok(notice) = notices.try_recv() {
        if let ostler_model::Event::Stopping { order } = &notice.record.event {
            cancelled |= *order == ostler_model::StopOrder::Cancelled;
        }
    }
    assert!(cancelled);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_is_written_and_closed() {
    let lab = Lab::new().await;
    let mut request = argv(&["cat"]);
    request.stdin = StdinRequest::Open;
    let info = lab
        .engine
        .start(&caller("one"), request)
        .await
        .expect("started");
    let id = info.id.to_string();
    let caller = caller("one");
    let taken = lab
        .engine
        .write(&caller, &id, b"hello\n".to_vec())
        .await
        .expect("taken");
    assert_eq!(taken, 6);
    let big = vec![b'x'; 300_000];
    let mut follower = lab
        .engine
        .follow(&caller, &id, Cursor::START)
        .expect("known");
    let mut rest = &big[..];
    while !rest.is_empty() {
        let taken = lab.engine.write(&caller, &id, rest.to_vec()).await;
        let taken = usize::try_from(taken.expect("it runs")).expect("fits");
        rest = &rest[taken..];
        // Where its pipe was full: once it has printed, it has read.
        let page = follower.next().await.expect("readable");
        assert!(page.is_some(), "it has not ended");
    }
    lab.engine.close_input(&caller, &id).await.expect("closed");
    let info = lab.ended(&id).await;
    assert!(info.state.ending.expect("ended").is_success());
    assert_eq!(info.output_end, 300_006);
    let late = lab
        .engine
        .write(&caller, &id, b"x".to_vec())
        .await
        .expect_err("ended");
    assert_eq!(late.code(), ErrorCode::ProcessControl);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_input_reaches_the_command() {
    let lab = Lab::new().await;
    let mut request = argv(&["tr", "a-z", "A-Z"]);
    request.stdin = StdinRequest::Given(b"shout".to_vec());
    let waited = lab
        .engine
        .run(&caller("one"), request, Some(PATIENCE))
        .await
        .expect("it ran");
    assert_eq!(
        lab.lines(&waited.info.id.short(), StreamName::Stdout),
        ["SHOUT"]
    );
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_write_waits_for_a_command_that_reads_and_not_for_one_that_does_not() {
    const BYTES: usize = 3_000_000;
    let lab = Lab::new().await;
    let caller = caller("one");
    let mut reads = sh("wc -c");
    let mut sleeps = sh("exec sleep 300");
    (reads.stdin, sleeps.stdin) = (StdinRequest::Open, StdinRequest::Open);
    let reads = lab
        .engine
        .start(&caller, reads)
        .await
        .expect("started")
        .id
        .short();
    let sleeps = lab
        .engine
        .start(&caller, sleeps)
        .await
        .expect("started")
        .id
        .short();
    let write = async |id: &str| {
        let bytes = vec![b'x'; BYTES];
        lab.engine.write(&caller, id, bytes).await.expect("taken")
    };
    assert_eq!(write(&reads).await, BYTES as u64);
    let taken = write(&sleeps).await;
    assert!(taken > 0 && taken < BYTES as u64, "{taken}");
    lab.engine
        .close_input(&caller, &reads)
        .await
        .expect("closed");
    lab.ended(&reads).await;
    assert_eq!(lab.lines(&reads, StreamName::Stdout), [BYTES.to_string()]);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_see_lines_and_quiet() {
    let lab = Lab::new().await;
    let script = "echo one; printf 'name? '; read x; echo got $x; read y; sleep 300";
    let mut request = sh(script);
    request.stdin = StdinRequest::Open;
    let info = lab
        .engine
        .start(&caller("one"), request)
        .await
        .expect("started");
    let id = info.id.short();
    let pattern = WaitFor::Pattern(Pattern::new(r"name\?").expect("a pattern"));
    let waited = lab
        .engine
        .wait(&caller("one"), &id, &pattern, Some(PATIENCE))
        .await
        .expect("known");
    let WaitEnd::Pattern(found) = waited.why else {
        panic!("{:?}", waited.why);
    };
    assert_eq!(found.line.to_string(), "name? ");
    lab.engine
        .write(&caller("one"), &id, b"me\n".to_vec())
        .await
        .expect("taken");
    let pattern = WaitFor::Pattern(Pattern::new("got me").expect("a pattern"));
    let waited = lab
        .engine
        .wait(&caller("one"), &id, &pattern, Some(PATIENCE))
        .await
        .expect("known");
    assert!(
        matches!(waited.why, WaitEnd::Pattern(_)),
        "{:?}",
        waited.why
    );
    let quiet = WaitFor::Idle(Duration::from_millis(100));
    let waited = lab
        .engine
        .wait(&caller("one"), &id, &quiet, Some(PATIENCE))
        .await
        .expect("known");
    assert_eq!(waited.why, WaitEnd::Idle);
    lab.engine
        .stop(
            &caller("one"),
            &id,
            StopRequest {
                force: true,
                ..StopRequest::default()
            },
        )
        .await
        .expect("stopped");
    let waited = lab
        .engine
        .wait(&caller("one"), &id, &quiet, Some(PATIENCE))
        .await
        .expect("known");
    assert_eq!(waited.why, WaitEnd::Exit);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_gets_every_byte_and_the_end() {
    let lab = Lab::new().await;
    let request = sh("i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done");
    let info = lab
        .engine
        .start(&caller("one"), request)
        .await
        .expect("started");
    let mut follower = lab
        .engine
        .follow(&caller("one"), &info.id.short(), Cursor::START)
        .expect("known");
    let mut seen = Vec::new();
    let all = async {
        while let Some(page) = follower.next().await.expect("readable") {
            for chunk in page.chunks {
                seen.extend(chunk.bytes);
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("it ends");
    let expected: String = (0..500).map(|i| format!("line {i}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&seen), expected);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_is_not_a_stop_is_told_as_such() {
    let lab = Lab::new().await;
    let info = lab.start(&["sleep", "300"]).await;
    let id = info.id.short();
    lab.engine
        .signal(&caller("one"), &id, Signal::HUP)
        .await
        .expect("sent");
    let info = lab.ended(&id).await;
    let ending = info.state.ending.clone().expect("ended");
    assert_eq!(
        (ending.cause, ending.signal),
        (Cause::Signaled, Some(Signal::HUP))
    );
    assert_eq!(info.status().process, ProcessStatus::Failed);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_the_kernel_refuses_is_an_error_with_the_execution_listed() {
    let lab = Lab::new().await;
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("garbage");
    std::fs::write(&file, [0x7f, b'E', b'L', b'F', 0, 0]).expect("a file");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("mode");
    let path = file.to_string_lossy().into_owned();
    let error = lab
        .engine
        .start(&caller("one"), argv(&[&path]))
        .await
        .expect_err("no program");
    assert_eq!(error.code(), ErrorCode::CommandExecution, "{error}");
    let error = lab
        .engine
        .run(&caller("one"), argv(&[&path]), None)
        .await
        .expect_err("no program");
    assert!(matches!(error, Error::NotBorn { .. }), "{error}");
    let listed = lab.engine.list(&caller("one"), &ListFilter::default());
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0].status().process, ProcessStatus::Error);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_newest_first_and_filtered() {
    let lab = Lab::new().await;
    let mut ids = Vec::new();
    for labels in [&["a"][..], &["a", "b"], &["b"]] {
        let mut request = argv(&["true"]);
        request.labels = labels.iter().map(|it| (*it).to_owned()).collect();
        let waited = lab
            .engine
            .run(&caller("one"), request, Some(PATIENCE))
            .await
            .expect("ran");
        ids.push(waited.info.id);
    }
    let running = lab.start(&["sleep", "300"]).await;
    let list = |filter: ListFilter| -> Vec<_> {
        lab.engine
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
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_do_not_see_each_other() {
    let lab = Lab::new().await;
    let info = lab.start(&["sleep", "300"]).await;
    let id = info.id.short();
    let foreign = lab.engine.info(&caller("two"), &id).expect_err("foreign");
    let unknown = lab
        .engine
        .info(&caller("two"), "zzzzzzzz")
        .expect_err("unknown");
    let malformed = lab
        .engine
        .info(&caller("two"), "nonsense!")
        .expect_err("malformed");
    for error in [foreign, unknown, malformed] {
        assert_eq!(error.to_string(), "Process not found or access denied");
        assert_eq!(error.code(), ErrorCode::ProcessNotFound);
    }
    assert!(
        lab.engine
            .list(&caller("two"), &ListFilter::default())
            .is_empty()
    );
    let outcome = lab
        .engine
        .clean(&caller("two"), std::slice::from_ref(&id))
        .await
        .expect("a list");
    assert_eq!(outcome, [(id, CleanOutcome::NotFound)]);
    let empty = lab.engine.info(&caller("two"), "").expect_err("empty");
    assert_eq!(empty.code(), ErrorCode::Value);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clean_removes_what_has_ended_and_only_that() {
    let lab = Lab::new().await;
    let running = lab.start(&["sleep", "300"]).await.id.short();
    let ended = lab.start(&["true"]).await.id;
    lab.ended(&ended.short()).await;
    let dir = lab.state.path().join("executions").join(ended.to_string());
    assert!(dir.is_dir());
    let ids = [
        running.clone(),
        ended.short(),
        "unknown0".to_owned(),
        ended.short(),
    ];
    let outcomes = lab
        .engine
        .clean(&caller("one"), &ids)
        .await
        .expect("a list");
    let outcomes: Vec<_> = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(
        outcomes,
        [
            CleanOutcome::Running,
            CleanOutcome::Cleaned,
            CleanOutcome::NotFound,
            CleanOutcome::NotFound,
        ]
    );
    assert!(!dir.exists());
    let empty = lab
        .engine
        .clean(&caller("one"), &[])
        .await
        .expect_err("no ids");
    assert_eq!(empty.code(), ErrorCode::Value);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_cleared_also_while_it_runs() {
    let lab = Lab::new().await;
    let mut request = sh("echo before; read x; echo after; sleep 300");
    request.stdin = StdinRequest::Open;
    let info = lab
        .engine
        .start(&caller("one"), request)
        .await
        .expect("started");
    let id = info.id.short();
    let until = WaitFor::Pattern(Pattern::new("before").expect("a pattern"));
    lab.engine
        .wait(&caller("one"), &id, &until, Some(PATIENCE))
        .await
        .expect("known");
    assert_eq!(
        lab.engine
            .clear_output(&caller("one"), &id)
            .await
            .expect("cleared"),
        7
    );
    lab.engine
        .write(&caller("one"), &id, b"\n".to_vec())
        .await
        .expect("taken");
    let until = WaitFor::Pattern(Pattern::new("after").expect("a pattern"));
    lab.engine
        .wait(&caller("one"), &id, &until, Some(PATIENCE))
        .await
        .expect("known");
    assert_eq!(lab.lines(&id, StreamName::Stdout), ["after"]);
    let info = lab.engine.info(&caller("one"), &id).expect("known");
    assert_eq!(info.state.trimmed_bytes, 7);
    lab.engine
        .stop(
            &caller("one"),
            &id,
            StopRequest {
                force: true,
                ..StopRequest::default()
            },
        )
        .await
        .expect("stopped");
    assert_eq!(
        lab.engine
            .clear_output(&caller("one"), &id)
            .await
            .expect("cleared"),
        6
    );
    let info = lab.engine.info(&caller("one"), &id).expect("known");
    assert_eq!(info.state.trimmed_bytes, 13);
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_takes_its_finite_executions_along_and_leaves_the_rest_to_the_project() {
    let lab = Lab::new().await;
    let mut caller = caller("one");
    caller.owner.project = Some("house".to_owned());
    let finite = lab
        .engine
        .start(&caller, argv(&["sleep", "300"]))
        .await
        .expect("started")
        .id;
    let mut keep = argv(&["sleep", "300"]);
    keep.keep = true;
    let kept = lab.engine.start(&caller, keep).await.expect("started").id;
    lab.engine.end_session(&caller).await.expect("ended");
    let principal = Caller {
        scope: Scope::Principal,
        ..caller.clone()
    };
    let listed: Vec<_> = lab
        .engine
        .list(&principal, &ListFilter::default())
        .into_iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(listed, [kept]);
    let info = lab.engine.info(&principal, &kept.short()).expect("kept");
    assert_eq!(info.owner.session, None);
    assert!(lab.engine.info(&principal, &finite.short()).is_err());
    let mut other = caller.clone();
    other.owner.session = Some(SessionName("two".to_owned()));
    assert!(
        lab.engine.info(&other, &kept.short()).is_ok(),
        "same project"
    );
    other.owner.project = Some("garden".to_owned());
    assert!(
        lab.engine.info(&other, &kept.short()).is_err(),
        "other project"
    );
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quota_refuses_with_the_holders_and_frees_with_the_end() {
    let lab = Lab::with(|settings| settings.quotas.finite_per_session = 2).await;
    let first = lab.start(&["sleep", "300"]).await.id.short();
    lab.start(&["sleep", "300"]).await;
    let error = lab
        .engine
        .start(&caller("one"), argv(&["true"]))
        .await
        .expect_err("full");
    assert_eq!(error.code(), ErrorCode::QuotaExceeded);
    assert!(error.to_string().contains(&first), "{error}");
    assert!(
        lab.engine
            .start(&caller("two"), argv(&["true"]))
            .await
            .is_ok()
    );
    lab.engine
        .stop(&caller("one"), &first, StopRequest::default())
        .await
        .expect("stopped");
    assert!(
        lab.engine
            .start(&caller("one"), argv(&["true"]))
            .await
            .is_ok()
    );
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_removes_at_its_moment() {
    let lab = Lab::new().await;
    let mut request = argv(&["true"]);
    request.retention = ostler_engine::RetentionRequest::For(Duration::from_millis(300));
    let waited = lab
        .engine
        .run(&caller("one"), request, Some(PATIENCE))
        .await
        .expect("ran");
    let dir = lab
        .state
        .path()
        .join("executions")
        .join(waited.info.id.to_string());
    let gone = async {
        // The removal is the fact waited for; nothing announces it.
        let mut every = tokio::time::interval(Duration::from_millis(10));
        while dir.exists() {
            every.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("removed");
    assert!(
        lab.engine
            .list(&caller("one"), &ListFilter::default())
            .is_empty()
    );
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_executions_are_there_after_a_restart() {
    let lab = Lab::new().await;
    let waited = lab
        .engine
        .run(&caller("one"), sh("echo kept; exit 4"), Some(PATIENCE))
        .await
        .expect("ran");
    let id = waited.info.id.short();
    lab.engine.shutdown().await;
    let before = lab.engine.info(&caller("one"), &id).expect("known");
    let engine = open(lab.state.path(), |_| {}).await;
    let after = engine.info(&caller("one"), &id).expect("known again");
    assert_eq!(after.state, before.state);
    assert_eq!(after.output_end, 5);
    assert_eq!(*after.spec, *before.spec);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_missing_are_rebuilt_from_spec_and_exit_record() {
    let lab = Lab::new().await;
    let waited = lab
        .engine
        .run(&caller("one"), sh("exit 4"), Some(PATIENCE))
        .await
        .expect("ran");
    let id = waited.info.id;
    lab.engine.shutdown().await;
    let dir = lab.state.path().join("executions").join(id.to_string());
    std::fs::remove_file(dir.join("events.jsonl")).expect("it was written");
    let engine = open(lab.state.path(), |_| {}).await;
    let after = engine
        .info(&caller("one"), &id.short())
        .expect("known again");
    assert_eq!(after.state.ending.as_ref().and_then(|it| it.code), Some(4));
    assert_eq!(after.state.started_at, waited.info.state.started_at);
    assert!(dir.join("events.jsonl").exists());
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_stops_what_is_not_durable_and_refuses_the_rest() {
    let lab = Lab::new().await;
    let info = lab.start(&["sleep", "300"]).await;
    lab.engine.shutdown().await;
    let info = lab
        .engine
        .info(&caller("one"), &info.id.short())
        .expect("known");
    assert!(matches!(
        info.state.ending.expect("ended").cause,
        Cause::Stopped { .. }
    ));
    let error = lab
        .engine
        .start(&caller("one"), argv(&["true"]))
        .await
        .expect_err("closed");
    assert!(matches!(error, Error::Closing));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_engine_works_in_a_state_directory() {
    let lab = Lab::new().await;
    let place = LocalPlace::open(lab.state.path(), Keeper::None)
        .await
        .expect("a place");
    let second = Engine::open(Settings::new(lab.state.path()), Arc::new(place)).await;
    let error = second.expect_err("locked");
    assert_eq!(error.code(), ErrorCode::Initialization);
    assert!(
        error
            .to_string()
            .ends_with(&format!("in use by process {}", std::process::id())),
        "{error}"
    );
    lab.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_middle_of_a_running_commands_output_is_dropped_and_said_so() {
    const MIB: u64 = 1024 * 1024;
    let lab = Lab::with(|settings| {
        settings.output = OutputPolicy {
            head_bytes: MIB,
            tail_bytes: MIB,
        };
    })
    .await;
    let mut request = sh("head -c 400000000 /dev/zero; read x");
    request.stdin = StdinRequest::Open;
    let info = lab.engine.start(&caller("one"), request).await;
    let id = info.expect("started").id.short();
    let mut notices = lab.engine.subscribe();
    // Whoever waits for quiet is told of output, and so is the driver.
    let me = caller("one");
    let quiet = WaitFor::Idle(Duration::from_secs(1));
    let waited = lab.engine.wait(&me, &id, &quiet, Some(PATIENCE));
    let waited = waited.await.expect("known");
    assert_eq!(waited.why, WaitEnd::Idle);
    let info = lab.engine.info(&caller("one"), &id).expect("known");
    assert!(!info.state.is_finished());
    assert!(info.state.trimmed_bytes > 0, "{:?}", info.state);
    let trimmed = std::iter::from_fn(|| notices.try_recv().ok()).any(|notice| {
        matches!(
            notice.record.event,
            Event::Trimmed {
                reason: TrimReason::Retention,
                ..
            }
        )
    });
    assert!(trimmed);
    let journal = lab.engine.journal(&caller("one"), &id).expect("known");
    let stats = journal.stats().expect("readable");
    assert_eq!(stats.dropped_bytes, info.state.trimmed_bytes);
    lab.engine.shutdown().await;
}
