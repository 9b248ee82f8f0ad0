use hyper::Method;

use super::*;
use crate::fake_engine::{API, EngineFault, FakeEngine, IMAGE};
use crate::pool::local_image;

fn client(engine: &FakeEngine) -> EngineClient {
    EngineClient::new(engine.discovery())
}

#[tokio::test]
async fn the_version_of_the_api_is_the_older_one_of_both() {
    let engine = FakeEngine::start();
    let client = client(&engine);
    let connection = client.connect().await.expect("connected");
    let facts = connection.facts();
    assert_eq!(
        (facts.api_version.as_str(), facts.version.as_str()),
        (API, "20.10.24")
    );
    assert!(facts.has_seccomp && !facts.rootless && !facts.may_limit_layers());
    engine.state.lock().versions.clear();
    local_image(&connection, IMAGE).await.expect("there");
    assert_eq!(engine.state.lock().versions, [API]);
    assert_eq!(client.last_facts().as_ref(), Some(facts));
}

#[tokio::test]
async fn what_does_not_exist_or_is_refused_is_told_apart() {
    let engine = FakeEngine::start();
    let connection = client(&engine).connect().await.expect("connected");
    for name in ["other", "../containers/x", "a b"] {
        let absent = local_image(&connection, name).await.expect_err("absent");
        assert_eq!(
            absent,
            ContainerError::NoImage {
                image: name.to_owned()
            }
        );
    }
    assert_eq!(
        engine.count(&Method::GET, "/json"),
        1,
        "the others are no names"
    );
    for (fault, expected) in [
        (
            EngineFault::Refuse(500, "broken"),
            "the container engine refused: broken",
        ),
        (
            EngineFault::Refuse(500, "write /x: no space left on device"),
            "the container engine has no space left: write /x: no space left on device",
        ),
        (
            EngineFault::Garbage,
            "the container engine refused: its answer is not understood",
        ),
    ] {
        engine.repair();
        engine.fail(Method::GET, "/json", fault);
        let error = local_image(&connection, IMAGE).await.expect_err("refused");
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[tokio::test]
async fn without_an_engine_each_socket_is_named_with_its_problem() {
    let directory = tempfile::tempdir().expect("a directory");
    let (absent, file) = (
        directory.path().join("absent"),
        directory.path().join("file"),
    );
    std::fs::write(&file, "").expect("written");
    let discovery = EngineDiscovery {
        docker_host: Some(format!("unix://{}", absent.display())),
        container_host: Some("ssh://host".to_owned()),
        ..EngineDiscovery::default()
    };
    let error = EngineClient::new(discovery)
        .connect()
        .await
        .expect_err("none");
    let expected = ContainerError::NoEngine {
        tried: vec![
            format!("{} (no such file)", absent.display()),
            "ssh://host (only unix sockets are supported)".to_owned(),
        ],
    };
    assert_eq!(error, expected);
    let discovery = EngineDiscovery {
        configured: Some(file.display().to_string()),
        ..EngineDiscovery::default()
    };
    let error = EngineClient::new(discovery)
        .connect()
        .await
        .expect_err("none");
    assert!(
        error.to_string().ends_with("(nothing listens on it)"),
        "{error}"
    );
}

#[tokio::test]
async fn an_engine_that_does_not_answer_takes_no_more_than_its_time() {
    let engine = FakeEngine::start();
    let client = client(&engine);
    let connection = client.connect().await.expect("connected");
    engine.fail(Method::GET, "/json", EngineFault::Hang);
    // The clock moves on when nothing else is to be done.
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let error = local_image(&connection, IMAGE)
        .await
        .expect_err("no answer");
    assert!(
        matches!(error, ContainerError::EngineUnresponsive { .. }),
        "{error}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    engine.fail(Method::GET, "/version", EngineFault::Hang);
    let other = EngineClient::new(engine.discovery());
    let error = other.connect().await.expect_err("no answer");
    assert!(
        matches!(error, ContainerError::EngineUnresponsive { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn an_engine_that_was_restarted_is_found_again() {
    let mut engine = FakeEngine::start();
    let client = client(&engine);
    let connection = client.connect().await.expect("connected");
    local_image(&connection, IMAGE).await.expect("there");
    engine.stop().await;
    let error = local_image(&connection, IMAGE).await.expect_err("gone");
    assert!(
        matches!(error, ContainerError::EngineUnresponsive { .. }),
        "{error}"
    );
    assert!(connection.is_lost());
    let error = client.connect().await.expect_err("gone");
    assert!(matches!(error, ContainerError::NoEngine { .. }), "{error}");
    engine.listen();
    let connection = client.connect().await.expect("connected");
    local_image(&connection, IMAGE).await.expect("there");
}
