//! The order of starts and stops.

use ostler_engine::ServiceError;
use ostler_model::{Dependency, DependencyCondition};

use super::fixture::{ServiceFixture, free_port, named, service_error};
use crate::test_engine::test_caller;

fn need(name: &str, condition: DependencyCondition) -> Dependency {
    Dependency {
        name: name.to_owned(),
        condition,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_needed_starts_first_and_is_waited_for() {
    let fixture = ServiceFixture::new().await;
    let (db, api) = (free_port(), free_port());
    fixture.write(
        "ostler.toml",
        &format!(
            r#"
[services.web]
command = "cat migrated && exec sleep 300"
depends_on = {{ api = "ready", migrate = "completed" }}
[services.api]
command = ["python3", "server.py", "{api}"]
depends_on = ["db"]
[services.db]
command = ["python3", "server.py", "{db}"]
[services.migrate]
command = "echo done > migrated"
depends_on = {{ db = "listening" }}
[services.alone]
command = "sleep 300"
"#
        ),
    );
    let up = fixture.up(&["web"]);
    let up = up.await.expect("they start");
    let names: Vec<&str> = up.iter().map(|it| it.service.name.as_str()).collect();
    assert_eq!(names, ["db", "api", "migrate", "web"]);
    let began = |name: &str| {
        let state = fixture.service(name).execution.expect("started").state;
        state.started_at.expect("it ran")
    };
    let ready_at = |name: &str| {
        let state = fixture.service(name).execution.expect("started").state;
        assert!(state.is_ready(), "{name}");
        state.signs.last().expect("a sign").at
    };
    assert!(began("api") >= ready_at("db"));
    assert!(began("web") >= ready_at("api"));
    assert_eq!(fixture.service("migrate").status(), "stopped");
    assert_eq!(fixture.service("alone").status(), "stopped");
    assert!(fixture.service("alone").execution.is_none());
    let web = fixture.service("web");
    assert_eq!(
        web.defined_in.as_deref(),
        fixture.dir().join("ostler.toml").to_str()
    );
    // Nothing runs twice.
    let up = fixture.up(&["web"]);
    let up = up.await.expect("they live");
    let reused: Vec<_> = up.iter().map(|it| (&*it.service.name, it.reused)).collect();
    assert_eq!(reused, [("db", true), ("api", true), ("web", true)]);
    // And they stop the other way round.
    let stopped = fixture.stop("db").await;
    assert_eq!(stopped.dependents.last().map(String::as_str), Some("api"));
    assert!(stopped.dependents.contains(&"web".to_owned()));
    assert_eq!(stopped.released, [db]);
    for name in ["web", "api", "db"] {
        assert_eq!(fixture.service(name).status(), "stopped", "{name}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn circles_and_unknown_names_start_nothing() {
    let fixture = ServiceFixture::new().await;
    fixture.write(
        "ostler.toml",
        "[services.a]\ncommand = \"sleep 300\"\ndepends_on = [\"b\"]\n\
         [services.b]\ncommand = \"sleep 300\"\ndepends_on = [\"a\"]\n\
         [services.c]\ncommand = \"sleep 300\"\ndepends_on = [\"nobody\"]\n",
    );
    for (name, expected) in [
        (
            "a",
            "it depends on 'a', which depends on it in turn: a -> b -> a",
        ),
        (
            "c",
            "it depends on 'nobody', which is neither running nor defined",
        ),
        ("d", "no service 'd'; known: a, b, c"),
    ] {
        assert_eq!(
            service_error(fixture.up(&[name]).await).to_string(),
            expected
        );
    }
    let mut request = named("e", fixture.sh("sleep 300"));
    request.depends_on = vec![need("a", DependencyCondition::Ready)];
    service_error(fixture.start(request).await.map(drop));
    let all = fixture
        .engine
        .services(&test_caller(), Some(&fixture.dir()))
        .expect("a list");
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|it| it.execution.is_none()));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_that_dies_ends_the_wait_and_says_how() {
    let fixture = ServiceFixture::new().await;
    let start = |name: &str, script: &str| named(name, fixture.sh(script));
    let guard = fixture.start(start("db", "exec sleep 300")).await;
    guard.expect("it starts").detach().expect("open");
    let mut dead = start("dead", "echo no such table; exit 3");
    let guard = fixture.start(dead.clone()).await;
    guard.expect("it starts").detach().expect("open");
    fixture
        .wait_until("its end", |fixture| !fixture.service("dead").is_living())
        .await;
    dead.name = Some("web".to_owned());
    dead.depends_on = vec![
        need("db", DependencyCondition::Started),
        need("dead", DependencyCondition::Ready),
    ];
    let error = service_error(fixture.start(dead).await.map(drop));
    let actual = "it depends on 'dead', which ended before it was ready: exit code 3; its last \
                line: no such table";
    assert_eq!(error.to_string(), actual);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_waits_for_another_is_pending() {
    let fixture = ServiceFixture::new().await;
    let gate = fixture.dir().join("gate");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; echo open; exec sleep 300",
        gate.display()
    );
    let mut db = named("db", fixture.sh(&script));
    db.ready_pattern = Some("open".to_owned());
    let guard = fixture.start(db).await;
    guard.expect("it starts").detach().expect("open");
    let mut web = named("web", fixture.sh("exec sleep 300"));
    web.depends_on = vec![need("db", DependencyCondition::Ready)];
    let (engine, caller) = (fixture.engine.clone(), test_caller());
    let mut starting = tokio::task::JoinSet::new();
    starting.spawn(async move {
        engine
            .start_service(&caller, web)
            .await
            .and_then(ostler_engine::StartGuard::commit)
    });
    fixture
        .wait_until("pending", |fixture| {
            let found = fixture.engine.service(&test_caller(), "web", None);
            found.is_ok_and(|it| it.status() == "pending")
        })
        .await;
    let why = fixture.why("web").await.expect("it is known");
    assert!(
        why.cause.starts_with(
            "it waits for 'db' to be ready; it needs 'db' to be ready, which is starting"
        ),
        "{}",
        why.cause
    );
    std::fs::write(gate, "").expect("written");
    let started = starting.join_next().await.expect("it is under way");
    let info = started.expect("no panic").expect("it starts");
    assert_eq!(fixture.id("web"), info.id);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_keeps_only_those_that_need_it_from_starting() {
    let fixture = ServiceFixture::new().await;
    fixture.write(
        "ostler.toml",
        "[services.bad]\ncommand = [\"/no/such/program\"]\n\
         [services.needs]\ncommand = \"exec sleep 300\"\ndepends_on = [\"bad\"]\n\
         [services.good]\ncommand = \"exec sleep 300\"\n",
    );
    let (me, dir, base) = (test_caller(), fixture.dir(), fixture.base());
    let result = fixture.engine.service_up(&me, &dir, &[], &base).await;
    let result = result.expect("one starts");
    let names: Vec<&str> = result.failures.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["bad", "needs"]);
    assert_eq!(result.services.len(), 1);
    // Where none of the requested ones starts, that is an error; it is remembered.
    let error = service_error(fixture.up(&["bad"]).await);
    assert!(
        matches!(&error, ServiceError::Start { name, .. } if name == "bad"),
        "{error}"
    );
    for name in ["bad", "needs"] {
        let notes = fixture.service(name).notes;
        assert!(
            matches!(&notes[..], [note] if note.contains("failed: ") && note.contains("/no/such/program")),
            "{notes:?}"
        );
    }
    assert_eq!(
        fixture
            .service("good")
            .execution
            .expect("it runs")
            .state
            .attempt,
        1
    );
    assert!(fixture.service("needs").execution.is_none());
    fixture.write(
        "ostler.toml",
        "[services.bad]\ncommand = \"exec sleep 300\"\n",
    );
    fixture.up(&["bad"]).await.expect("it starts now");
    assert!(fixture.service("bad").notes.is_empty());
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_defined_is_said_so() {
    let fixture = ServiceFixture::new().await;
    let from = fixture.dir().display().to_string();
    let actual = format!("no ostler.toml in {from} or above it, up to the home directory or /");
    assert_eq!(service_error(fixture.up(&[]).await).to_string(), actual);
    let error = service_error(fixture.up(&["web"]).await);
    let actual = format!("{actual}; and no service 'web' is defined otherwise");
    assert_eq!(error.to_string(), actual);
    let hint = error.hint().expect("what to write");
    let example = hint.split_once('\n').expect("an example").1;
    fixture.write("ostler.toml", &example.replace("port = 3000\n", ""));
    assert_eq!(fixture.service("web").command, "npm run dev");
    fixture.close().await;
}
