//! Approval of starts, through the engine: requested from a person, valid once, for exactly the
//! request that was shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ostler_backend::{LaunchPlan, SpawnError};
use ostler_model::{Caller, Owner, Principal, Scope, SessionName};
use ostler_policy::{RuleSet, RuleSource, RuleTier};
use ostler_testkit::fake_backend::{FakeBackend, SpawnBehavior};
use tempfile::TempDir;

use super::InteractionError;
use crate::{Engine, Error, Settings, StartRequest};

const RULES: &str = r#"
    default = "allow"
    [[rule]]
    id = "ask-true"
    prefix = ["true"]
    decision = "ask"
    justification = "to be asked"
    match = ["true"]
    not_match = ["false"]
    [[rule]]
    id = "no-false"
    prefix = ["false"]
    decision = "deny"
    justification = "never"
    match = ["false"]
    not_match = ["true"]
"#;

async fn engine(state: &TempDir) -> Engine {
    engine_with(state, |_| SpawnBehavior::Run).await
}

async fn engine_with(
    state: &TempDir,
    script: impl Fn(&LaunchPlan) -> SpawnBehavior + Send + Sync + 'static,
) -> Engine {
    let place = Arc::new(FakeBackend::new(state.path(), script));
    let mut settings = Settings::new(state.path());
    let source = RuleSource::new(RuleTier::User, "test", RULES);
    settings.policy = Some(Arc::new(RuleSet::load(&[source]).expect("rules")));
    Engine::open(settings, place).await.expect("an engine")
}

fn caller(session: &str, scope: Scope) -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: None,
            session: Some(SessionName(session.to_owned())),
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope,
        projects: ostler_model::ProjectView::default(),
    }
}

fn request(words: &[&str]) -> StartRequest {
    let mut request = StartRequest::argv(words.iter().copied(), "/");
    request.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    request
}

async fn start_needing_approval(engine: &Engine, who: &Caller, request: StartRequest) -> String {
    match engine.start(who, request).await {
        Err(Error::ApprovalRequired {
            interaction, rule, ..
        }) => {
            assert_eq!(rule, "ask-true");
            interaction
        }
        other => panic!("{other:?}"),
    }
}

/// A person answers at the command line.
async fn answer(engine: &Engine, id: &str, value: &str) {
    let person = caller("cli", Scope::Principal);
    let answered = engine.answer_interaction(&person, id, value.to_owned());
    answered.await.expect("answered");
}

#[tokio::test(start_paused = true)]
async fn a_yes_of_a_person_holds_once_for_the_same_start() {
    let state = TempDir::new().expect("a directory");
    let engine = engine(&state).await;
    let agent = caller("a", Scope::Session);
    let id = start_needing_approval(&engine, &agent, request(&["true", "x"])).await;
    assert_eq!(
        start_needing_approval(&engine, &agent, request(&["true", "x"])).await,
        id,
        "asked once"
    );
    let own = engine
        .answer_interaction(&agent, &id, "yes".to_owned())
        .await;
    assert!(
        matches!(
            own,
            Err(Error::Interaction(InteractionError::OnlyPerson { .. }))
        ),
        "{own:?}"
    );
    answer(&engine, &id, "yes").await;
    let mut other = request(&["true", "y"]);
    other.options.approval = Some(id.clone());
    assert_ne!(start_needing_approval(&engine, &agent, other).await, id);
    let mut elsewhere = request(&["true", "x"]);
    elsewhere.cwd = "/tmp".into();
    assert_ne!(start_needing_approval(&engine, &agent, elsewhere).await, id);
    let stranger = caller("b", Scope::Session);
    assert_ne!(
        start_needing_approval(&engine, &stranger, request(&["true", "x"])).await,
        id
    );
    let mut again = request(&["true", "x"]);
    again.options.approval = Some(id.clone());
    engine.start(&agent, again.clone()).await.expect("approved");
    assert_ne!(
        start_needing_approval(&engine, &agent, again).await,
        id,
        "once"
    );
    engine.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_yes_is_not_consumed_by_a_start_that_runs_nothing() {
    let state = TempDir::new().expect("a directory");
    let spawns = AtomicU32::new(0);
    let script = move |_: &LaunchPlan| match spawns.fetch_add(1, Ordering::Relaxed) {
        0 => SpawnBehavior::Refuse(SpawnError::Storage("no space left on device".to_owned())),
        1 => SpawnBehavior::SpawnFailed { errno: 13 },
        _ => SpawnBehavior::Run,
    };
    let engine = engine_with(&state, script).await;
    let agent = caller("a", Scope::Session);
    let id = start_needing_approval(&engine, &agent, request(&["true"])).await;
    answer(&engine, &id, "yes").await;
    for _ in 0..2 {
        let failed = engine.start(&agent, request(&["true"])).await;
        assert!(
            matches!(failed, Err(Error::SpawnFailed { .. })),
            "{failed:?}"
        );
    }
    let mut with_foreign_id = request(&["true"]);
    let stranger = caller("b", Scope::Session);
    let foreign = engine.start(&stranger, request(&["echo"])).await;
    with_foreign_id.id = Some(foreign.expect("started").id);
    let refused = engine.start(&agent, with_foreign_id).await;
    assert!(refused.is_err(), "{refused:?}");
    engine
        .start(&agent, request(&["true"]))
        .await
        .expect("the yes is valid still");
    assert_ne!(
        start_needing_approval(&engine, &agent, request(&["true"])).await,
        id,
        "once"
    );
    engine.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_no_and_a_deny_name_the_rule() {
    let state = TempDir::new().expect("a directory");
    let engine = engine(&state).await;
    let agent = caller("a", Scope::Session);
    let id = start_needing_approval(&engine, &agent, request(&["true"])).await;
    answer(&engine, &id, "no").await;
    let mut named = request(&["true"]);
    named.options.approval = Some(id);
    let refused = engine.start(&agent, named).await;
    assert!(
        matches!(&refused, Err(Error::Denied { rule, .. }) if rule == "ask-true"),
        "{refused:?}"
    );
    for words in [
        &["false"][..],
        &["env", "false"],
        &["sh", "-c", "ls; false"],
    ] {
        let denied = engine.start(&agent, request(words)).await;
        assert!(
            matches!(&denied, Err(Error::Denied { rule, .. }) if rule == "no-false"),
            "{denied:?}"
        );
    }
    engine
        .start(&agent, request(&["echo", "false"]))
        .await
        .expect("no rule is about it");
    engine.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_workspace_file_tightens_and_a_broken_one_lets_nothing_run() {
    let state = TempDir::new().expect("a directory");
    let engine = engine(&state).await;
    let agent = caller("a", Scope::Session);
    let work = TempDir::new().expect("a directory");
    let below = work.path().join("src");
    std::fs::create_dir_all(work.path().join(".ostler")).expect("made");
    std::fs::create_dir_all(&below).expect("made");
    let mut start = request(&["echo", "x"]);
    start.cwd = below.into();
    engine
        .start(&agent, start.clone())
        .await
        .expect("no rule is about it");
    let file = work.path().join(".ostler/policy.toml");
    for (text, wanted) in [
        (
            "[[rule]]\nid = \"no-echo\"\nprefix = [\"echo\"]\ndecision = \"deny\"\n\
             justification = \"here\"\nmatch = [\"echo a\"]\nnot_match = [\"ls\"]",
            "no-echo",
        ),
        ("disable = [\"no-false\"]", "workspace-policy"),
        ("[[rule", "workspace-policy"),
    ] {
        std::fs::write(&file, text).expect("written");
        let denied = engine.start(&agent, start.clone()).await;
        assert!(
            matches!(&denied, Err(Error::Denied { rule, .. }) if rule == wanted),
            "{denied:?}"
        );
    }
    engine.shutdown().await;
}
