//! Executions outlive the engine: over real processes, with this test program as the zygote.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use ostler_backend_local::{LocalBackend, ZYGOTE_ARGUMENT, ZygoteConfig, zygote_main};
use ostler_engine::{Engine, Settings, StartRequest, StopRequest, WaitEnd, WaitFor};
use ostler_journal::{LineQuery, Pattern};
use ostler_model::{Caller, Owner, Principal, Scope, TerminationCause};
use tempfile::TempDir;

mod pauses;
mod terminals;

const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(ZYGOTE_ARGUMENT) {
        zygote_main();
    }
    let trials = vec![
        Trial::test("it_goes_on_and_its_true_end_is_found", || {
            block(it_goes_on_and_its_true_end_is_found())
        }),
        Trial::test("an_end_without_an_engine_is_found", || {
            block(an_end_without_an_engine_is_found())
        }),
        Trial::test("what_was_adopted_can_be_stopped", || {
            block(what_was_adopted_can_be_stopped())
        }),
        Trial::test("a_prompt_survives_a_restart_and_is_reported_once", || {
            block(a_prompt_survives_a_restart_and_is_reported_once())
        }),
    ];
    let trials = trials
        .into_iter()
        .chain(terminals::trials())
        .chain(pauses::trials())
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn block(test: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(test);
    Ok(())
}

fn test_caller() -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: None,
            session: None,
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Principal,
        projects: ostler_model::ProjectView::default(),
    }
}

async fn open(state: &Path) -> Engine {
    let keeper = ZygoteConfig::Executable(std::env::current_exe().expect("a path"));
    let place = LocalBackend::open(state, keeper).await.expect("a place");
    let mut settings = Settings::new(state);
    settings.grace = Duration::from_millis(500);
    Engine::open(settings, Arc::new(place))
        .await
        .expect("an engine")
}

fn sh(script: &str) -> StartRequest {
    StartRequest::argv(["sh", "-c", script], "/tmp")
}

async fn wait_end(engine: &Engine, id: &str) -> ostler_engine::ExecutionInfo {
    let waited = engine
        .wait(&test_caller(), id, &WaitFor::Exit, Some(PATIENCE))
        .await
        .expect("known");
    assert_eq!(waited.end, WaitEnd::Exit);
    waited.info
}

fn output(engine: &Engine, id: &str) -> Vec<String> {
    let journal = engine.journal(&test_caller(), id).expect("known");
    let page = journal.lines(&LineQuery::default()).expect("readable");
    let text =
        |line: ostler_journal::JournalLine| String::from_utf8_lossy(&line.bytes).into_owned();
    page.lines.into_iter().map(text).collect()
}

async fn it_goes_on_and_its_true_end_is_found() {
    let state = TempDir::new().expect("a directory");
    let engine = open(state.path()).await;
    let mut request = sh("echo before; read x; echo after $x; exit 7");
    request.stdin = ostler_engine::StdinRequest::Open;
    let id = engine
        .start(&test_caller(), request)
        .await
        .expect("started")
        .id
        .short();
    engine.shutdown().await;
    drop(engine);

    let engine = open(state.path()).await;
    let info = engine.info(&test_caller(), &id).expect("known");
    assert!(!info.state.is_finished());
    assert_eq!(info.state.adoptions, 1);
    engine
        .write(&test_caller(), &id, b"all\n".to_vec())
        .await
        .expect("accepted");
    let after = WaitFor::Pattern(Pattern::new("^after all$").expect("a pattern"));
    let waited = engine
        .wait(&test_caller(), &id, &after, Some(PATIENCE))
        .await
        .expect("known");
    assert!(
        matches!(waited.end, WaitEnd::Pattern(_)),
        "{:?}",
        waited.end
    );
    let ending = wait_end(&engine, &id).await.state.ending.expect("ended");
    assert_eq!(
        (ending.cause, ending.code),
        (TerminationCause::Exited, Some(7))
    );
    assert_eq!(output(&engine, &id), ["before", "after all"]);
    engine.shutdown().await;
}

async fn a_prompt_survives_a_restart_and_is_reported_once() {
    async fn prompt(engine: &Engine, id: &str) -> ostler_engine::Prompt {
        let waited = engine
            .wait(&test_caller(), id, &WaitFor::Prompt, Some(PATIENCE))
            .await;
        let why = waited.expect("known").end;
        let WaitEnd::Prompt(prompt) = why else {
            panic!("{why:?}");
        };
        prompt
    }
    let state = TempDir::new().expect("a directory");
    let engine = open(state.path()).await;
    let mut request = sh("printf 'Sure? [y/N] '; cat | head -n 1; exit 5");
    request.stdin = ostler_engine::StdinRequest::Open;
    let id = engine
        .start(&test_caller(), request)
        .await
        .expect("started")
        .id;
    let name = id.short();
    let first = prompt(&engine, &name).await;
    assert_eq!(first.text, "Sure? [y/N] ");
    engine.shutdown().await;
    drop(engine);

    let engine = open(state.path()).await;
    assert_eq!(prompt(&engine, &name).await, first);
    let question = ostler_engine::Question::from_prompt(&first, id);
    let interaction_id = engine
        .open_interaction(&test_caller(), question)
        .expect("asked")
        .id
        .to_string();
    let answered = engine
        .answer_interaction(&test_caller(), &interaction_id, "no".to_owned())
        .await;
    answered.expect("accepted");
    engine
        .close_input(&test_caller(), &name)
        .await
        .expect("closed");
    let ending = wait_end(&engine, &name).await.state.ending.expect("ended");
    assert_eq!(
        (ending.cause, ending.code),
        (TerminationCause::Exited, Some(5))
    );
    assert_eq!(output(&engine, &name), ["Sure? [y/N] N"]);
    let records = engine.events(&test_caller(), &name).expect("readable");
    let actual = |record: &&ostler_model::EventRecord| {
        matches!(record.event, ostler_model::Event::PromptDetected { .. })
    };
    assert_eq!(records.iter().filter(actual).count(), 1);
    engine.shutdown().await;
}

async fn an_end_without_an_engine_is_found() {
    let state = TempDir::new().expect("a directory");
    let gate = state.path().join("gate");
    let done = state.path().join("done");
    let engine = open(state.path()).await;
    let script = format!(
        "mkfifo {gate}; echo ready; read x < {gate}; echo after; touch {done}; exit 9",
        gate = gate.display(),
        done = done.display(),
    );
    let id = engine
        .start(&test_caller(), sh(&script))
        .await
        .expect("started")
        .id
        .short();
    let ready = WaitFor::Pattern(Pattern::new("ready").expect("a pattern"));
    engine
        .wait(&test_caller(), &id, &ready, Some(PATIENCE))
        .await
        .expect("known");
    engine.shutdown().await;
    drop(engine);

    // Opening the pipe waits for its reader: the command lives without an engine.
    std::fs::write(&gate, "go\n").expect("the command reads");
    let exit = state.path().join("executions");
    let record = async {
        let mut every = tokio::time::interval(Duration::from_millis(5));
        let found = || -> Option<()> {
            let dir = std::fs::read_dir(&exit).ok()?.next()?.ok()?;
            dir.path().join("exit").exists().then_some(())
        };
        while found().is_none() {
            every.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, record)
        .await
        .expect("the shim writes its record");
    assert!(done.exists());

    let engine = open(state.path()).await;
    let info = engine.info(&test_caller(), &id).expect("known");
    assert_eq!(info.state.ending.as_ref().and_then(|it| it.code), Some(9));
    assert_eq!(output(&engine, &id), ["ready", "after"]);
    engine.shutdown().await;
}

async fn what_was_adopted_can_be_stopped() {
    let state = TempDir::new().expect("a directory");
    let engine = open(state.path()).await;
    let id = engine
        .start(
            &test_caller(),
            sh("trap '' TERM; sleep 300 & sleep 300; sleep 300"),
        )
        .await
        .expect("started")
        .id
        .short();
    engine.shutdown().await;
    drop(engine);
    let engine = open(state.path()).await;
    let info = engine
        .stop(&test_caller(), &id, StopRequest::default())
        .await
        .expect("stopped");
    assert!(matches!(
        info.state.ending.expect("ended").cause,
        TerminationCause::Stopped { .. }
    ));
    assert_eq!(info.survivors, Vec::<u32>::new());
    engine.shutdown().await;
}
