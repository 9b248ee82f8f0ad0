//! Starts that a request waits for no longer: they go on in the engine, and can be stopped.

use std::time::Duration;

use ostler_engine::{
    Error, ServiceError, ServiceInfo, ServiceRequest, ServiceReuse, ServiceStart, StartLimits,
    StopRequest, UpResult, WaitEnd, WaitFor,
};
use ostler_model::{Caller, Dependency, DependencyCondition, ExecutionId, Scope};

use super::fixture::{ServiceFixture, named, service_error};
use crate::test_engine::{PATIENCE, test_caller};

/// `db` is ready once the file `gate` exists; `web` needs it, and `api` needs `web`. `migrate` runs
/// once for `web`.
const MANIFEST: &str = r#"
[services.db]
command = "while [ ! -e gate ]; do sleep 0.05; done; echo open; exec sleep 300"
ready_pattern = "open"
[services.migrate]
command = "echo x >> migrations"
[services.web]
command = "exec sleep 300"
depends_on = { db = "ready", migrate = "completed" }
[services.api]
command = "exec sleep 300"
depends_on = ["web"]
"#;

/// No wait for dependencies.
const NO_WAIT: StartLimits = StartLimits {
    dependencies: Some(Duration::ZERO),
    total: None,
};

async fn workspace() -> ServiceFixture {
    let fixture = ServiceFixture::new().await;
    fixture.write("ostler.toml", MANIFEST);
    fixture
}

async fn up(fixture: &ServiceFixture, name: &str, limits: StartLimits) -> Result<UpResult, Error> {
    let (me, dir, base) = (test_caller(), fixture.dir(), fixture.base());
    let names = [name.to_owned()];
    let up = fixture
        .engine
        .service_up_within(&me, &dir, &names, &base, limits);
    tokio::time::timeout(PATIENCE, up).await.expect("in time")
}

/// A command that waits for `db`.
fn dependent(fixture: &ServiceFixture, id: ExecutionId) -> ServiceRequest {
    let mut request = named("own", fixture.sh("exec sleep 300"));
    request.start.id = Some(id);
    request.depends_on = vec![Dependency {
        name: "db".to_owned(),
        condition: DependencyCondition::Ready,
    }];
    request
}

async fn start(
    fixture: &ServiceFixture,
    request: ServiceRequest,
    reuse: ServiceReuse,
    limits: StartLimits,
) -> Result<ServiceStart, Error> {
    let me = test_caller();
    let start = fixture
        .engine
        .start_service_within(&me, request, reuse, limits);
    tokio::time::timeout(PATIENCE, start)
        .await
        .expect("in time")
}

fn running_id(started: Result<ServiceStart, Error>) -> ExecutionId {
    match started.expect("started") {
        ServiceStart::Running(ensured) => ensured.service.execution.expect("it runs").id,
        ServiceStart::Pending(info) => panic!("{} is pending", info.name),
    }
}

fn pending_names(services: &[ServiceInfo]) -> Vec<&str> {
    services.iter().map(|it| it.name.as_str()).collect()
}

async fn open_gate(fixture: &ServiceFixture) {
    std::fs::write(fixture.dir().join("gate"), "").expect("written");
    fixture.until_ready(fixture.id("db")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_nobody_waits_for_goes_on() {
    let fixture = workspace().await;
    let result = up(&fixture, "api", NO_WAIT).await.expect("it begins");
    let pending = pending_names(&result.pending);
    assert!(pending.ends_with(&["web", "api"]), "{pending:?}");
    let web = fixture.service("web");
    assert_eq!(web.status(), "pending");
    assert_eq!(web.pending.as_deref(), Some("'db' to be ready"));
    assert!(fixture.service("db").is_living());
    fixture
        .wait_until("the migration", |it| {
            it.service("migrate").execution.is_some() && !it.service("migrate").is_living()
        })
        .await;
    // The same request waits on: nothing runs twice.
    let again = up(&fixture, "api", NO_WAIT).await.expect("it goes on");
    assert_eq!(pending_names(&again.pending), ["web", "api"]);
    open_gate(&fixture).await;
    let waited = up(&fixture, "api", StartLimits::default()).await;
    let waited = waited.expect("they start");
    assert_eq!(pending_names(&waited.pending), [""; 0]);
    for name in ["web", "api"] {
        assert!(fixture.service(name).is_living(), "{name}");
    }
    let runs = std::fs::read_to_string(fixture.dir().join("migrations"));
    assert_eq!(runs.expect("it ran"), "x\n");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_with_dependencies_is_started_once() {
    let fixture = workspace().await;
    let id = ExecutionId::mint();
    for reuse in [ServiceReuse::Refuse, ServiceReuse::Allow] {
        match start(&fixture, dependent(&fixture, id), reuse, NO_WAIT).await {
            Ok(ServiceStart::Pending(info)) => {
                assert_eq!(info.name, "own");
                assert_eq!(info.pending.as_deref(), Some("'db' to be ready"));
            }
            other => panic!("{other:?}"),
        }
    }
    open_gate(&fixture).await;
    fixture
        .wait_until("its start", |it| it.service("own").is_living())
        .await;
    assert_eq!(fixture.id("own"), id);
    // The same request again is about the same service; another one finds the name taken.
    let (no_limit, refuse) = (StartLimits::default(), ServiceReuse::Refuse);
    let again = start(&fixture, dependent(&fixture, id), refuse, no_limit).await;
    assert_eq!(running_id(again), id);
    let other = dependent(&fixture, ExecutionId::mint());
    let ensured = start(&fixture, other.clone(), ServiceReuse::Allow, no_limit).await;
    assert_eq!(running_id(ensured), id);
    let refused = service_error(start(&fixture, other, refuse, no_limit).await);
    assert!(
        matches!(refused, ServiceError::Running { .. }),
        "{refused:?}"
    );
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_starts_at_once_under_one_id_are_one() {
    let fixture = workspace().await;
    let id = ExecutionId::mint();
    let (refuse, no_limit) = (ServiceReuse::Refuse, StartLimits::default());
    let begin = || start(&fixture, dependent(&fixture, id), refuse, no_limit);
    let (one, other, ()) = tokio::join!(begin(), begin(), async {
        fixture
            .wait_until("pending", |it| {
                let found = it.engine.service(&test_caller(), "own", Some(&it.dir()));
                found.is_ok_and(|it| it.status() == "pending")
            })
            .await;
        open_gate(&fixture).await;
    });
    assert_eq!((running_id(one), running_id(other)), (id, id));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_start_needs_no_further_request() {
    let fixture = workspace().await;
    let result = up(&fixture, "web", NO_WAIT).await.expect("it begins");
    assert!(pending_names(&result.pending).contains(&"web"));
    open_gate(&fixture).await;
    fixture
        .wait_until("its start", |it| it.service("web").is_living())
        .await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_service_is_stopped() {
    let fixture = workspace().await;
    up(&fixture, "api", NO_WAIT).await.expect("it begins");
    let stopped = fixture.stop("web").await;
    assert_eq!(stopped.service.status(), "stopped");
    fixture
        .wait_until("the end of the start", |it| {
            it.service("api").status() == "stopped"
        })
        .await;
    let note = |name: &str| fixture.service(name).notes.join(" ");
    assert!(
        note("web").contains("it was stopped before it started"),
        "{}",
        note("web")
    );
    let api = note("api");
    assert!(
        api.contains("'web', which could not be started: it was stopped before it started"),
        "{api}"
    );
    open_gate(&fixture).await;
    for name in ["web", "api"] {
        assert!(fixture.service(name).execution.is_none(), "{name}");
    }
    // A stop is no ban.
    up(&fixture, "web", StartLimits::default())
        .await
        .expect("it starts");
    assert!(fixture.service("web").is_living());
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_in_the_foreground_is_stopped_too() {
    let fixture = workspace().await;
    let (engine, dir, base) = (fixture.engine.clone(), fixture.dir(), fixture.base());
    let mut starting = tokio::task::JoinSet::new();
    starting.spawn(async move {
        let me = test_caller();
        let names = ["web".to_owned()];
        let up = engine.service_up(&me, &dir, &names, &base);
        up.await.map(drop)
    });
    fixture
        .wait_until("pending", |it| it.service("web").status() == "pending")
        .await;
    fixture.stop("web").await;
    let result = starting.join_next().await.expect("one").expect("no panic");
    let ServiceError::Start { problem, .. } = service_error(result) else {
        panic!("the start of one service failed");
    };
    assert_eq!(problem, "it was stopped before it started");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_started_for_a_session_that_ended() {
    let fixture = workspace().await;
    up(&fixture, "api", NO_WAIT).await.expect("it begins");
    let me = test_caller();
    fixture.engine.end_session(&me).await.expect("it ends");
    let found = fixture.engine.service(&me, "web", Some(&fixture.dir()));
    assert_eq!(found.expect("it is defined").status(), "stopped");
    let everyone = Caller {
        scope: Scope::Principal,
        ..me
    };
    let find = |name: &str| {
        let found = fixture
            .engine
            .service(&everyone, name, Some(&fixture.dir()));
        found.expect("it is defined").execution
    };
    std::fs::write(fixture.dir().join("gate"), "").expect("written");
    let db = find("db").expect("it passed to the project").id;
    let db = db.to_string();
    let ready = fixture
        .engine
        .wait(&everyone, &db, &WaitFor::Ready, Some(PATIENCE));
    assert_eq!(ready.await.expect("it is known").end, WaitEnd::Ready);
    for name in ["web", "api"] {
        assert!(find(name).is_none(), "{name}");
    }
    let stop = fixture.engine.stop(&everyone, &db, StopRequest::default());
    stop.await.expect("it stops");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_ends_before_its_limit_ends_its_start() {
    let fixture = workspace().await;
    let (engine, dir, base) = (fixture.engine.clone(), fixture.dir(), fixture.base());
    let mut starting = tokio::task::JoinSet::new();
    starting.spawn(async move {
        let me = test_caller();
        let names = ["web".to_owned()];
        let limits = StartLimits {
            dependencies: Some(PATIENCE),
            total: None,
        };
        let up = engine.service_up_within(&me, &dir, &names, &base, limits);
        up.await.map(drop)
    });
    fixture
        .wait_until("pending", |it| it.service("web").status() == "pending")
        .await;
    // Its dependency runs, and not for this request alone.
    up(&fixture, "db", NO_WAIT).await.expect("it runs");
    starting.shutdown().await;
    fixture
        .wait_until("the end", |it| it.service("web").status() == "stopped")
        .await;
    open_gate(&fixture).await;
    assert!(fixture.service("web").execution.is_none());
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_engine_ends_pending_starts() {
    let fixture = workspace().await;
    up(&fixture, "web", NO_WAIT).await.expect("it begins");
    let end = fixture.engine.shutdown();
    tokio::time::timeout(PATIENCE, end).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_starts_than_the_limit_go_on() {
    /// As `BACKGROUND_PLANS_MAX`.
    const LIMIT: usize = 64;
    let fixture = ServiceFixture::new().await;
    let needing = |number| {
        format!("[services.s{number}]\ncommand = \"exec sleep 300\"\ndepends_on = [\"db\"]\n")
    };
    let manifest: String = (0..=LIMIT).map(needing).collect();
    let db = "[services.db]\ncommand = \"exec sleep 300\"\nready_pattern = \"never\"\n";
    fixture.write("ostler.toml", &format!("{db}{manifest}"));
    for number in 0..LIMIT {
        let result = up(&fixture, &format!("s{number}"), NO_WAIT).await;
        assert_eq!(result.expect("it begins").pending.len(), 1);
    }
    let (engine, dir, base) = (fixture.engine.clone(), fixture.dir(), fixture.base());
    let mut starting = tokio::task::JoinSet::new();
    starting.spawn(async move {
        let me = test_caller();
        let names = [format!("s{LIMIT}")];
        let up = engine.service_up_within(&me, &dir, &names, &base, NO_WAIT);
        up.await.map(|result| result.pending.len())
    });
    fixture
        .wait_until("one more", |it| {
            it.service(&format!("s{LIMIT}")).status() == "pending"
        })
        .await;
    // It is answered when its own start has failed.
    fixture.stop("db").await;
    let result = starting.join_next().await.expect("one").expect("no panic");
    let error = service_error(result.map(drop)).to_string();
    assert!(
        error.contains("'db', which ended before it was ready"),
        "{error}"
    );
    fixture.close().await;
}
