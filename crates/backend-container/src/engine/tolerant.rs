//! The two answers that everything depends on: the state of a container, and the list of ours.
//!
//! The client library refuses an answer with a state that it does not know, and Podman has some
//! that Docker has not (`stopped`). Here everything that is not read is ignored, and a state that is
//! not known is one in which a container serves no start.

use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::connection::{ContainerStatus, ListedContainer};
use super::error::EngineError;

/// The largest answer, in bytes.
const ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// An engine, and the version of its API that is spoken.
#[derive(Debug, Clone, Copy)]
pub(super) struct TolerantClient<'a> {
    /// Its socket.
    pub(super) socket: &'a Path,
    /// The version.
    pub(super) api_version: &'a str,
}

impl TolerantClient<'_> {
    /// The state of a container; the name must be one of ours.
    pub(super) async fn inspect(self, name: &str) -> Result<ContainerStatus, EngineError> {
        let path = format!("/containers/{name}/json");
        let found = self.get::<Inspected>(&path).await?;
        Ok(found.status())
    }

    /// All containers with this label, whether or not they run.
    pub(super) async fn list(self, label: &str) -> Result<Vec<ListedContainer>, EngineError> {
        let filters = serde_json::json!({ "label": [label] }).to_string();
        let filters = percent_encoded(&filters);
        let path = format!("/containers/json?all=true&filters={filters}");
        let found = self.get::<Vec<Listed>>(&path).await?.into_iter();
        let found = found.filter_map(|it| {
            let name = it.names.into_iter().next()?;
            Some(ListedContainer {
                name: name.trim_start_matches('/').to_owned(),
                labels: it.labels.unwrap_or_default(),
            })
        });
        Ok(found.collect())
    }

    async fn get<T: DeserializeOwned>(self, path: &str) -> Result<T, EngineError> {
        let (status, body) = self.exchange(path).await?;
        if !(200..300).contains(&status) {
            let message = serde_json::from_slice::<Refusal>(&body);
            let message = message.map_or_else(
                |_| String::from_utf8_lossy(&body).into_owned(),
                |it| it.message,
            );
            return Err(EngineError::of_answer(status, &message));
        }
        serde_json::from_slice(&body).map_err(|error| EngineError::Malformed(error.to_string()))
    }

    /// One request on a connection of its own.
    async fn exchange(self, path: &str) -> Result<(u16, Bytes), EngineError> {
        let lost = |error: &dyn std::error::Error| EngineError::disconnected(error);
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("/v{}{path}", self.api_version))
            .header("host", "engine")
            .header("connection", "close")
            .body(Empty::<Bytes>::new());
        let request = request.map_err(|error| EngineError::Malformed(error.to_string()))?;
        let stream = UnixStream::connect(self.socket).await;
        let stream = stream.map_err(|error| lost(&error))?;
        let connected = handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = connected.map_err(|error| lost(&error))?;
        let exchange = async move {
            let response = sender.send_request(request).await;
            let response = response.map_err(|error| lost(&error))?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), ANSWER_BYTES)
                .collect()
                .await;
            let body = body.map_err(|error| EngineError::Malformed(error.to_string()))?;
            Ok((status, body.to_bytes()))
        };
        let (answer, _closed) = tokio::join!(exchange, connection);
        answer
    }
}

/// With everything but letters and digits as `%XX`.
fn percent_encoded(text: &str) -> String {
    let encoded = text.bytes().map(|byte| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    encoded.collect()
}

#[derive(Debug, Deserialize)]
struct Refusal {
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    #[serde(default)]
    names: Vec<String>,
    labels: Option<HashMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    #[serde(default)]
    id: String,
    #[serde(default)]
    image: String,
    #[serde(default)]
    state: InspectedState,
    #[serde(default)]
    host_config: InspectedHostConfig,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct InspectedState {
    status: String,
    pid: i64,
    exit_code: i64,
    error: String,
    health: Option<InspectedHealth>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct InspectedHealth {
    status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct InspectedHostConfig {
    storage_opt: Option<HashMap<String, String>>,
}

impl Inspected {
    fn status(self) -> ContainerStatus {
        let pid = u32::try_from(self.state.pid).ok();
        let storage = self.host_config.storage_opt.unwrap_or_default();
        let health = self.state.health.unwrap_or_default();
        ContainerStatus {
            id: self.id,
            running: self.state.status == "running",
            unhealthy: health.status == "unhealthy",
            pid: pid.filter(|pid| *pid != 0),
            exit_code: self.state.exit_code,
            error: self.state.error,
            image_id: self.image,
            limits_layer: storage.contains_key("size"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(json: &str) -> ContainerStatus {
        let found: Inspected = serde_json::from_str(json).expect("valid");
        found.status()
    }

    #[test]
    fn only_a_container_that_is_said_to_run_runs() {
        for (state, running) in [
            ("running", true),
            ("paused", false),
            ("stopped", false),
            ("restarting", false),
            ("not known here", false),
        ] {
            let json = format!(r#"{{"Id": "a", "State": {{"Status": "{state}", "Pid": 7}}}}"#);
            assert_eq!(status(&json).running, running, "{state}");
        }
        assert_eq!(status("{}"), ContainerStatus::default());
    }

    #[test]
    fn health_limits_and_ends_are_read() {
        let found = status(
            r#"{"Image": "sha256:1", "HostConfig": {"StorageOpt": {"size": "1"}, "Other": [1]},
                "State": {"Status": "exited", "Pid": 0, "ExitCode": 7, "Error": "said",
                          "Health": {"Status": "unhealthy", "Log": null}}}"#,
        );
        assert!(found.unhealthy && found.limits_layer && !found.running);
        assert_eq!(
            (found.pid, found.exit_code, found.error.as_str()),
            (None, 7, "said")
        );
        let none = status(r#"{"HostConfig": {"StorageOpt": null}, "State": {"Health": null}}"#);
        assert_eq!(none, ContainerStatus::default());
    }

    #[test]
    fn a_query_is_encoded() {
        assert_eq!(percent_encoded("a=1:2\""), "a%3D1%3A2%22");
    }
}
