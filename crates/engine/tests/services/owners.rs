//! Whose services they are, and definitions that are kept.

use ostler_engine::{PortRequest, ServiceError, StopRequest};
use ostler_model::RestartPolicy;

use crate::fixture::{ServiceFixture, caller, named, service_error, test_caller};

#[tokio::test(flavor = "multi_thread")]
async fn others_see_nothing_and_unknown_is_told_like_foreign() {
    let lab = ServiceFixture::new().await;
    let begun = lab.start(named("web", lab.sh("exec sleep 300"))).await;
    let id = begun.expect("it starts").commit().id.short();
    for other in [
        caller(1, None, "one"),
        caller(0, Some("p"), "two"),
        caller(0, None, "three"),
    ] {
        assert!(
            lab.engine
                .services(&other, None)
                .expect("a list")
                .is_empty()
        );
        for name in ["web", &id, "nobody"] {
            let error = service_error(lab.engine.service(&other, name, None));
            assert_eq!(
                error.to_string(),
                format!("no service '{name}'; known: none")
            );
            let stop = lab
                .engine
                .stop_service(&other, (name, None), StopRequest::default());
            service_error(stop.await);
            service_error(lab.engine.restart_service(&other, name, None).await);
            service_error(lab.engine.diagnose_service(&other, name, None).await);
        }
        // Its name is free for them.
        let begun = lab
            .engine
            .start_service(&other, named("web", lab.sh("exec sleep 300")))
            .await;
        drop(begun.expect("it starts"));
    }
    assert_eq!(lab.service(&id).name, "web");
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_outlive_the_engine_and_start_on_request_only() {
    let lab = ServiceFixture::new().await;
    let mut request = named("job", lab.sh("echo $COLOR; exec sleep 300"));
    request.start.set_env = vec![("COLOR".into(), "blue".into())];
    request.restart = RestartPolicy::OnFailure { max: 2 };
    request.port = PortRequest::Lease;
    lab.engine
        .define_service(&test_caller(), &request)
        .expect("kept");
    let mut wrong = request.clone();
    wrong.ready_pattern = Some("(".to_owned());
    assert!(matches!(
        service_error(lab.engine.define_service(&test_caller(), &wrong)),
        ServiceError::Value { .. }
    ));
    let lab = lab.reopen().await;
    let found = lab.service("job");
    assert_eq!(
        (found.status(), found.defined_in.as_deref()),
        ("stopped", Some("api"))
    );
    assert!(found.execution.is_none());
    let other = caller(1, None, "one");
    assert!(
        lab.engine
            .services(&other, None)
            .expect("a list")
            .is_empty()
    );
    assert!(matches!(
        service_error(lab.engine.forget_service(&other, "job")),
        ServiceError::Unknown { .. }
    ));
    // What a person defines is for the agents in every project.
    let colleague = caller(0, Some("p"), "two");
    assert_eq!(
        lab.engine.services(&colleague, None).expect("a list").len(),
        1
    );
    let up = lab.up(&["job"]);
    up.await.expect("it starts");
    let info = lab.service("job").execution.expect("it runs");
    assert!(info.spec.env.set.contains(&("COLOR".into(), "blue".into())));
    assert!(
        info.spec
            .lifetime
            .plan()
            .expect("a service")
            .leased_port
            .is_some()
    );
    lab.engine
        .forget_service(&test_caller(), "job")
        .expect("forgotten");
    assert!(lab.service("job").is_living());
    let lab = lab.reopen().await;
    service_error(lab.up(&["job"]).await);
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_garbled_file_of_definitions_is_set_aside() {
    let lab = ServiceFixture::new().await;
    lab.engine
        .define_service(&test_caller(), &named("job", lab.sh("x")))
        .expect("kept");
    std::fs::write(lab.state.path().join("services.json"), "{").expect("written");
    let lab = lab.reopen().await;
    assert!(
        lab.engine
            .services(&test_caller(), None)
            .expect("a list")
            .is_empty()
    );
    assert!(lab.state.path().join("services.json.damaged").exists());
    lab.close().await;
}
