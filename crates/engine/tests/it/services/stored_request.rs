//! What was requested is stored, and started again as it was requested: also by the next engine.

use std::path::PathBuf;

use ostler_engine::{ServiceRequest, StartRequest};
use ostler_model::{ExecutionId, PortRequest, RequestRecord, RestartPolicy};

use super::fixture::{ServiceFixture, named};
use crate::test_engine::test_caller;

/// A value of a secret.
const VALUE: &str = "correct-horse";

fn spec_file(fixture: &ServiceFixture, id: ExecutionId) -> PathBuf {
    let state = fixture.state.path();
    state
        .join("executions")
        .join(id.to_string())
        .join("spec.json")
}

fn record(fixture: &ServiceFixture, name: &str) -> RequestRecord {
    let execution = fixture.service(name).execution.expect("it was started");
    let record = execution.spec.request.clone();
    *record.expect("a stored request")
}

/// A server whose request is not what its specification says: its port is leased to it, and its
/// patterns are added to the table's.
fn request(fixture: &ServiceFixture) -> ServiceRequest {
    let mut request = fixture.by_name("web");
    request.port = PortRequest::Lease;
    request.ready_pattern = Some("^on ".to_owned());
    request.restart = RestartPolicy::OnFailure { max: 2 };
    request.start.options.labels = vec!["mine".to_owned()];
    request.start.options.description = "the web".to_owned();
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_engine_starts_what_was_requested() {
    let fixture = ServiceFixture::new().await;
    let first = fixture.ready(request(&fixture)).await;
    let requested = record(&fixture, "web");
    assert_eq!(requested.service.as_ref().unwrap().port, PortRequest::Lease);
    fixture.stop("web").await;
    let fixture = fixture.reopen().await;
    let restarted = fixture.restart("web").await.expect("it starts again");
    let second = restarted.execution.expect("it was started");
    assert_ne!(first.id, second.id, "it had ended");
    fixture.until_ready(second.id).await;
    assert_eq!(record(&fixture, "web").service, requested.service);
    assert_eq!(second.spec.command, first.spec.command);
    assert_eq!(second.spec.lifetime.plan().unwrap().ready, {
        let mut ready = first.spec.lifetime.plan().unwrap().ready.clone();
        ready.port = second.spec.lifetime.plan().unwrap().leased_port;
        ready
    });
    assert_eq!(second.spec.labels, ["mine"]);
    fixture.stop("web").await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_directory_without_stored_requests_is_restarted_from() {
    let fixture = ServiceFixture::new().await;
    let first = fixture.ready(request(&fixture)).await;
    fixture.stop("web").await;
    let path = spec_file(&fixture, first.id);
    let stored = std::fs::read(&path).expect("a spec");
    let mut stored: serde_json::Value = serde_json::from_slice(&stored).expect("it is JSON");
    let spec = stored["spec"].as_object_mut().expect("an object");
    spec.remove("request").expect("a stored request");
    std::fs::write(path, stored.to_string()).expect("written");
    let fixture = fixture.reopen().await;
    let restarted = fixture.restart("web").await.expect("it starts again");
    let second = restarted.execution.expect("it was started");
    fixture.until_ready(second.id).await;
    assert_eq!(second.spec.command, first.spec.command);
    assert!(second.spec.lifetime.plan().unwrap().leased_port.is_some());
    assert_eq!(second.spec.labels, ["mine"]);
    assert!(second.spec.request.is_some(), "now it is stored");
    fixture.stop("web").await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_stored_by_name_only() {
    let fixture = ServiceFixture::with(|settings| {
        settings.secrets.prefixes = vec!["SECRET_".to_owned()];
    })
    .await;
    let script = format!("echo {VALUE}; exec sleep 100");
    let mut request = named("keeper", fixture.sh(&script));
    let start = &mut request.start;
    start.base_env = vec![("SECRET_TOKEN".into(), VALUE.into())];
    start.options.secrets = vec!["TOKEN".to_owned()];
    start.options.set_env = vec![("URL".into(), format!("http://{VALUE}@host").into())];
    start.options.labels = vec![format!("for-{VALUE}")];
    start.options.description = format!("with {VALUE}");
    request.port = PortRequest::Lease;
    let id = fixture
        .start(request)
        .await
        .expect("it starts")
        .commit()
        .expect("open")
        .id;
    let stored = std::fs::read_to_string(spec_file(&fixture, id)).expect("a spec");
    assert!(stored.contains(r#""request":{"version":1"#), "{stored}");
    assert!(!stored.contains(VALUE), "{stored}");
    let record = record(&fixture, "keeper");
    assert_eq!(record.options.secrets, ["TOKEN"]);
    assert_eq!(
        record.options.set_env,
        [("URL".into(), "http://[secret TOKEN]@host".into())]
    );
    fixture.stop("keeper").await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_requested_again_as_it_was() {
    let fixture = ServiceFixture::new().await;
    let me = test_caller();
    let mut request = StartRequest::argv(["true"], fixture.dir());
    request.options.labels = vec!["mine".to_owned()];
    request.options.limits.pids = Some(50);
    request.options.set_env = vec![("A".into(), "1".into())];
    request.options.approval = Some("once".to_owned());
    let first_options = request.options.clone();
    let id = fixture.engine.start(&me, request).await.expect("it starts");
    let fixture = fixture.reopen().await;
    let id = id.id.to_string();
    let again = fixture.engine.rerun_request(&me, &id, Vec::new());
    let again = again.expect("it can be started again");
    assert_eq!(again.options.labels, first_options.labels);
    assert_eq!(again.options.set_env, first_options.set_env);
    assert_eq!(again.options.limits, first_options.limits);
    assert_eq!(again.options.approval, None, "that was for one start");
    let info = fixture.engine.info(&me, &id).expect("it is known");
    assert_eq!(again.options.level, Some(info.spec.policy.level));
    fixture.close().await;
}
