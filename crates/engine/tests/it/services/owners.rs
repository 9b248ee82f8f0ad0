//! Owners of services, and persistent definitions.

use ostler_engine::{PortRequest, ServiceError, StopRequest};
use ostler_model::RestartPolicy;

use super::fixture::{ServiceFixture, caller, named, service_error};
use crate::test_engine::test_caller;

#[tokio::test(flavor = "multi_thread")]
async fn others_see_nothing_and_unknown_is_reported_like_foreign() {
    let fixture = ServiceFixture::new().await;
    let guard = fixture
        .start(named("web", fixture.sh("exec sleep 300")))
        .await;
    let id = guard.expect("it starts").commit().expect("open").id.short();
    for other in [
        caller(1, None, "one"),
        caller(0, Some("p"), "two"),
        caller(0, None, "three"),
    ] {
        assert!(
            fixture
                .engine
                .services(&other, None)
                .expect("a list")
                .is_empty()
        );
        for name in ["web", &id, "nobody"] {
            let error = service_error(fixture.engine.service(&other, name, None));
            assert_eq!(
                error.to_string(),
                format!("no service '{name}'; known: none")
            );
            let stop = fixture
                .engine
                .stop_service(&other, name, None, StopRequest::default());
            service_error(stop.await);
            service_error(fixture.engine.restart_service(&other, name, None).await);
            service_error(fixture.engine.diagnose_service(&other, name, None).await);
        }
        // Its name is free for them.
        let guard = fixture
            .engine
            .start_service(&other, named("web", fixture.sh("exec sleep 300")))
            .await;
        drop(guard.expect("it starts"));
    }
    assert_eq!(fixture.service(&id).name, "web");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_outlive_the_engine_and_start_on_request_only() {
    let fixture = ServiceFixture::new().await;
    let mut request = named("job", fixture.sh("echo $COLOR; exec sleep 300"));
    request.start.options.set_env = vec![("COLOR".into(), "blue".into())];
    request.restart = RestartPolicy::OnFailure { max: 2 };
    request.port = PortRequest::Lease;
    fixture
        .engine
        .define_service(&test_caller(), &request)
        .expect("kept");
    let mut wrong = request.clone();
    wrong.ready_pattern = Some("(".to_owned());
    assert!(matches!(
        service_error(fixture.engine.define_service(&test_caller(), &wrong)),
        ServiceError::Value { .. }
    ));
    let fixture = fixture.reopen().await;
    let found = fixture.service("job");
    assert_eq!(
        (found.status(), found.defined_in.as_deref()),
        ("stopped", Some("api"))
    );
    assert!(found.execution.is_none());
    let other = caller(1, None, "one");
    assert!(
        fixture
            .engine
            .services(&other, None)
            .expect("a list")
            .is_empty()
    );
    assert!(matches!(
        service_error(fixture.engine.forget_service(&other, "job")),
        ServiceError::Unknown { .. }
    ));
    // What a person defines is for the agents in every project.
    let colleague = caller(0, Some("p"), "two");
    assert_eq!(
        fixture
            .engine
            .services(&colleague, None)
            .expect("a list")
            .len(),
        1
    );
    let up = fixture.up(&["job"]);
    up.await.expect("it starts");
    let info = fixture.service("job").execution.expect("it runs");
    assert!(info.spec.env.set.contains(&("COLOR".into(), "blue".into())));
    assert!(
        info.spec
            .lifetime
            .plan()
            .expect("a service")
            .leased_port
            .is_some()
    );
    fixture
        .engine
        .forget_service(&test_caller(), "job")
        .expect("forgotten");
    assert!(fixture.service("job").is_living());
    let fixture = fixture.reopen().await;
    service_error(fixture.up(&["job"]).await);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_garbled_file_of_definitions_is_set_aside() {
    let fixture = ServiceFixture::new().await;
    fixture
        .engine
        .define_service(&test_caller(), &named("job", fixture.sh("x")))
        .expect("kept");
    std::fs::write(fixture.state.path().join("services.json"), "{").expect("written");
    let fixture = fixture.reopen().await;
    assert!(
        fixture
            .engine
            .services(&test_caller(), None)
            .expect("a list")
            .is_empty()
    );
    assert!(fixture.state.path().join("services.json.damaged").exists());
    fixture.close().await;
}
