//! Reuse, replace, start; ports that are taken and ports that are leased.

use ostler_engine::{PortRequest, ServiceError};
use ostler_model::ExecutionId;

use super::fixture::{ServiceFixture, caller, free_port, named, service_error};
use crate::test_engine::test_caller;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_well_is_reused_by_name_and_by_command() {
    let fixture = ServiceFixture::new().await;
    let port = free_port();
    let first = fixture.ensure(fixture.server("web", port));
    let first = first.await.expect("it starts");
    assert!(!first.reused);
    let id = fixture.id("web");
    fixture.until_ready(id).await;
    let again = fixture.ensure(fixture.server("web", port));
    let again = again.await.expect("it lives");
    assert!(
        again.reused && again.note.starts_with("reused: ready for "),
        "{}",
        again.note
    );
    assert!(again.note.contains(&format!(":{port}")), "{}", again.note);
    assert_eq!(again.service.execution.expect("it lives").id, id);
    let mut unnamed = fixture.server("web", port);
    unnamed.name = None;
    let by_command = fixture.ensure(unnamed).await.expect("it lives");
    assert!(by_command.reused);
    assert_eq!(by_command.service.name, "web");
    let other = fixture.ensure(named("web", fixture.sh("sleep 300")));
    let note = other.await.expect("it lives").note;
    assert!(
        note.ends_with("it runs another command than the one asked for"),
        "{note}"
    );
    let mut other = fixture.server("web", port);
    other.start.options.set_env = vec![("MODE".into(), "test".into())];
    other.port = PortRequest::Fixed(free_port());
    let note = fixture.ensure(other).await.expect("it lives").note;
    assert!(
        note.ends_with("; it was started with another environment, port"),
        "{note}"
    );
    fixture.write("ostler.toml", "[services.web]\ncommand = \"sleep 300\"\n");
    let up = fixture.up(&["web"]).await.expect("it lives");
    assert!(
        up[0].note.contains("another command")
            && up[0].note.ends_with("ostler.toml: stop it first"),
        "{}",
        up[0].note
    );
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_ensure_the_same_one_at_once_start_one() {
    let fixture = ServiceFixture::new().await;
    let port = free_port();
    let me = test_caller();
    let ensures = (0..8).map(|_| {
        fixture
            .engine
            .ensure_service(&me, fixture.server("web", port))
    });
    let all = futures_util::future::join_all(ensures).await;
    let ids: Vec<(ExecutionId, bool)> = all
        .into_iter()
        .map(|it| it.expect("ensured"))
        .map(|it| (it.service.execution.expect("it lives").id, it.reused))
        .collect();
    assert!(ids.iter().all(|(id, _)| *id == ids[0].0), "{ids:?}");
    assert_eq!(ids.iter().filter(|(_, reused)| !reused).count(), 1);
    assert_eq!(fixture.engine.services(&me, None).expect("a list").len(), 1);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_well_is_replaced() {
    let fixture = ServiceFixture::new().await;
    let mut request = named("app", fixture.sh("echo FATAL: no; sleep 300"));
    request.fail_pattern = Some("FATAL".to_owned());
    let first = fixture.ensure(request.clone()).await;
    let first = first
        .expect("it starts")
        .service
        .execution
        .expect("it lives")
        .id;
    fixture
        .wait_until("ill", |fixture| {
            fixture.service("app").status() == "degraded"
        })
        .await;
    let second = fixture.ensure(request).await.expect("it starts");
    assert!(!second.reused);
    assert!(
        second
            .note
            .starts_with("replaced: it lived and was not well"),
        "{}",
        second.note
    );
    let old = fixture
        .engine
        .info(&test_caller(), &first.to_string())
        .expect("it is known");
    assert!(old.state.is_finished());
    assert_ne!(second.service.execution.expect("it lives").id, first);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_held_by_others_is_reported_and_nothing_is_ended() {
    let fixture = ServiceFixture::new().await;
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = stranger.local_addr().expect("bound").port();
    let mut request = fixture.by_name("web");
    request.port = PortRequest::Fixed(port);
    let error = service_error(fixture.ensure(request.clone()).await);
    let actual = error.to_string();
    let mine = format!("(pid {})", std::process::id());
    assert!(
        actual.starts_with(&format!("port {port} is held by ")) && actual.contains(&mine),
        "{actual}"
    );
    drop(stranger);
    fixture.ready(request).await;
    let mut other = fixture.by_name("other");
    other.port = PortRequest::Fixed(port);
    let error = service_error(fixture.start(other.clone()).await.map(drop));
    let ServiceError::PortTaken { service, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(service.as_deref(), Some("web"));
    let foreign = caller(0, None, "two");
    let error = service_error(
        fixture
            .engine
            .start_service(&foreign, other)
            .await
            .map(drop),
    );
    let ServiceError::PortTaken {
        service, holder, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (service, holder.execution, &*holder.command),
        (&None, None, "")
    );
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_distinct_over_all_sessions_and_end_with_the_service() {
    let base = free_port().clamp(1_025, 65_000);
    let fixture =
        ServiceFixture::with(|settings| settings.services.lease_ports = Some((base, base + 2)))
            .await;
    let lease = |name: &str| {
        let mut request = named(name, fixture.sh("echo port=$PORT; exec sleep 300"));
        request.port = PortRequest::Lease;
        request
    };
    let mut ports = Vec::new();
    for (name, session) in [("a", "one"), ("b", "two"), ("c", "three")] {
        let caller = caller(0, None, session);
        let guard = fixture.engine.start_service(&caller, lease(name)).await;
        let info = guard.expect("a port is free").commit().expect("open");
        let plan = info.spec.lifetime.plan().expect("a service");
        ports.push(plan.leased_port.expect("leased"));
        let port = plan.leased_port.expect("leased").to_string();
        assert!(
            info.spec
                .env
                .set
                .contains(&("PORT".into(), port.as_str().into()))
        );
    }
    let mut distinct = ports.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 3, "{ports:?}");
    let error = service_error(fixture.start(lease("d")).await.map(drop));
    assert!(matches!(error, ServiceError::NoPort { .. }), "{error}");
    fixture.stop("a").await;
    let guard = fixture.start(lease("d")).await;
    let info = guard.expect("one is free again").commit().expect("open");
    let leased = info.spec.lifetime.plan().and_then(|plan| plan.leased_port);
    assert_eq!(leased, Some(ports[0]));
    for session in ["two", "three"] {
        fixture
            .engine
            .end_session(&caller(0, None, session))
            .await
            .expect("over");
    }
    for name in ["b", "c"] {
        let everything = ostler_model::Caller {
            scope: ostler_model::Scope::Principal,
            ..test_caller()
        };
        let stop = fixture.engine.stop_service(
            &everything,
            name,
            None,
            ostler_engine::StopRequest::default(),
        );
        stop.await.expect("it stops");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_made_up_and_taken_ones_refused() {
    let fixture = ServiceFixture::new().await;
    let mut names = Vec::new();
    for _ in 0..2 {
        let guard = fixture.start(fixture.sh("sleep 300")).await;
        let info = guard.expect("it starts").commit().expect("open");
        names.push(info.spec.lifetime.plan().expect("a service").name.clone());
    }
    assert_eq!(names, ["sh", "sh-2"]);
    let error = service_error(fixture.start(named("sh", fixture.sh("x"))).await.map(drop));
    assert!(matches!(error, ServiceError::Running { .. }), "{error}");
    let error = service_error(fixture.start(named("Sh", fixture.sh("x"))).await.map(drop));
    assert!(matches!(error, ServiceError::Value { .. }), "{error}");
    fixture.stop("sh").await;
    let guard = fixture.start(named("sh", fixture.sh("sleep 300"))).await;
    guard.expect("its name is free").detach().expect("open");
    fixture.close().await;
}
