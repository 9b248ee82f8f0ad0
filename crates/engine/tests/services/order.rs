//! What comes before what.

use ostler_engine::ServiceError;
use ostler_model::{Dependency, DependencyCondition};

use crate::fixture::{ServiceFixture, free_port, named, service_error, test_caller};

fn need(name: &str, condition: DependencyCondition) -> Dependency {
    Dependency {
        name: name.to_owned(),
        condition,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_needed_starts_first_and_is_waited_for() {
    let lab = ServiceFixture::new().await;
    let (db, api) = (free_port(), free_port());
    lab.write(
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
    let up = lab.up(&["web"]);
    let up = up.await.expect("they start");
    let names: Vec<&str> = up.iter().map(|it| it.service.name.as_str()).collect();
    assert_eq!(names, ["db", "api", "migrate", "web"]);
    let began = |name: &str| {
        let state = lab.service(name).execution.expect("started").state;
        state.started_at.expect("it ran")
    };
    let ready_at = |name: &str| {
        let state = lab.service(name).execution.expect("started").state;
        assert!(state.is_ready(), "{name}");
        state.signs.last().expect("a sign").at
    };
    assert!(began("api") >= ready_at("db"));
    assert!(began("web") >= ready_at("api"));
    assert_eq!(lab.service("migrate").status(), "stopped");
    assert_eq!(lab.service("alone").status(), "stopped");
    assert!(lab.service("alone").execution.is_none());
    let web = lab.service("web");
    assert_eq!(
        web.defined_in.as_deref(),
        lab.dir().join("ostler.toml").to_str()
    );
    // Nothing runs twice.
    let up = lab.up(&["web"]);
    let up = up.await.expect("they live");
    let reused: Vec<_> = up.iter().map(|it| (&*it.service.name, it.reused)).collect();
    assert_eq!(reused, [("db", true), ("api", true), ("web", true)]);
    // And they stop the other way round.
    let stopped = lab.stop("db").await;
    assert_eq!(stopped.dependents.last().map(String::as_str), Some("api"));
    assert!(stopped.dependents.contains(&"web".to_owned()));
    assert_eq!(stopped.released, [db]);
    for name in ["web", "api", "db"] {
        assert_eq!(lab.service(name).status(), "stopped", "{name}");
    }
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn circles_and_unknown_names_start_nothing() {
    let lab = ServiceFixture::new().await;
    lab.write(
        "ostler.toml",
        "[services.a]\ncommand = \"sleep 300\"\ndepends_on = [\"b\"]\n\
         [services.b]\ncommand = \"sleep 300\"\ndepends_on = [\"a\"]\n\
         [services.c]\ncommand = \"sleep 300\"\ndepends_on = [\"nobody\"]\n",
    );
    for (name, told) in [
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
        assert_eq!(service_error(lab.up(&[name]).await).to_string(), told);
    }
    let mut request = named("e", lab.sh("sleep 300"));
    request.depends_on = vec![need("a", DependencyCondition::Ready)];
    service_error(lab.start(request).await.map(drop));
    let all = lab
        .engine
        .services(&test_caller(), Some(&lab.dir()))
        .expect("a list");
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|it| it.execution.is_none()));
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_that_dies_ends_the_wait_and_says_how() {
    let lab = ServiceFixture::new().await;
    let start = |name: &str, script: &str| named(name, lab.sh(script));
    let begun = lab.start(start("db", "exec sleep 300")).await;
    begun.expect("it starts").detach();
    let mut dead = start("dead", "echo no such table; exit 3");
    let begun = lab.start(dead.clone()).await;
    begun.expect("it starts").detach();
    lab.wait_until("its end", |lab| !lab.service("dead").is_living())
        .await;
    dead.name = Some("web".to_owned());
    dead.depends_on = vec![
        need("db", DependencyCondition::Started),
        need("dead", DependencyCondition::Ready),
    ];
    let error = service_error(lab.start(dead).await.map(drop));
    let told = "it depends on 'dead', which ended before it was ready: exit code 3; its last \
                line: no such table";
    assert_eq!(error.to_string(), told);
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_another_is_told_as_pending() {
    let lab = ServiceFixture::new().await;
    let gate = lab.dir().join("gate");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; echo open; exec sleep 300",
        gate.display()
    );
    let mut db = named("db", lab.sh(&script));
    db.ready_pattern = Some("open".to_owned());
    let begun = lab.start(db).await;
    begun.expect("it starts").detach();
    let mut web = named("web", lab.sh("exec sleep 300"));
    web.depends_on = vec![need("db", DependencyCondition::Ready)];
    let (engine, caller) = (lab.engine.clone(), test_caller());
    let mut starting = tokio::task::JoinSet::new();
    starting.spawn(async move {
        engine
            .start_service(&caller, web)
            .await
            .map(ostler_engine::StartGuard::commit)
    });
    lab.wait_until("pending", |lab| {
        let found = lab.engine.service(&test_caller(), "web", None);
        found.is_ok_and(|it| it.status() == "pending")
    })
    .await;
    let why = lab.why("web").await.expect("it is known");
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
    assert_eq!(lab.id("web"), info.id);
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_keeps_only_those_that_need_it_from_starting() {
    let lab = ServiceFixture::new().await;
    lab.write(
        "ostler.toml",
        "[services.bad]\ncommand = [\"/no/such/program\"]\n\
         [services.needs]\ncommand = \"exec sleep 300\"\ndepends_on = [\"bad\"]\n\
         [services.good]\ncommand = \"exec sleep 300\"\n",
    );
    let up = lab.up(&[]).await;
    let error = service_error(up);
    assert!(
        matches!(&error, ServiceError::Start { name, .. } if name == "bad"),
        "{error}"
    );
    assert_eq!(
        lab.service("good")
            .execution
            .expect("it runs")
            .state
            .attempt,
        1
    );
    assert!(lab.service("needs").execution.is_none());
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_defined_is_said_so() {
    let lab = ServiceFixture::new().await;
    let from = lab.dir().display().to_string();
    let told = format!("no ostler.toml in {from} or above it, up to the home directory or /");
    assert_eq!(service_error(lab.up(&[]).await).to_string(), told);
    let error = service_error(lab.up(&["web"]).await);
    let told = format!("{told}; and no service 'web' is defined otherwise");
    assert_eq!(error.to_string(), told);
    let hint = error.hint().expect("what to write");
    let example = hint.split_once('\n').expect("an example").1;
    lab.write("ostler.toml", &example.replace("port = 3000\n", ""));
    assert_eq!(lab.service("web").command, "npm run dev");
    lab.close().await;
}
