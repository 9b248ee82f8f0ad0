//! One engine, and the requests that are made to it. Each has a time limit.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::container::AttachContainerResults;
use bollard::errors::Error as ClientError;
use bollard::models::{ContainerCreateBody, ImageSummary};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, ListImagesOptionsBuilder,
    RemoveContainerOptionsBuilder, WaitContainerOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, ClientVersion, Docker};
use futures_util::StreamExt as _;
use tokio::time::timeout;

use super::api_version::with_version;
use super::error::EngineError;
use super::facts::EngineFacts;
use super::tolerant::TolerantClient;

/// How long requests may take that only read.
const READ_LIMIT: Duration = Duration::from_secs(5);
/// How long listing containers or images may take.
const LIST_LIMIT: Duration = Duration::from_secs(15);
/// How long creating or starting a container may take: it prepares its layers and its network.
const MAKE_LIMIT: Duration = Duration::from_secs(60);
/// How long removing a container may take.
const REMOVE_LIMIT: Duration = Duration::from_secs(30);
/// The time limit of the client library itself, in seconds: longer than each of ours, which come
/// first, and longer than builds and pulls take to answer.
const CLIENT_LIMIT_S: u64 = 600;
/// The oldest version of the API that has what is used here (Docker 20.10, Podman 3.0).
const API_MIN: ClientVersion = ClientVersion {
    major_version: 1,
    minor_version: 40,
};

/// A connection to one engine. The client makes one for each request, so that an engine that was
/// restarted is reached again; [`is_lost`](Self::is_lost) says that it is to be looked for anew.
#[derive(Debug)]
pub(crate) struct EngineConnection {
    docker: Docker,
    facts: EngineFacts,
    lost: AtomicBool,
}

/// An image that is on the engine's machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalImage {
    /// Its id, which names its content.
    pub(crate) id: String,
    /// The user that its commands run as; none is root.
    pub(crate) user: Option<String>,
}

/// A container, as the engine describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ContainerStatus {
    /// Its id.
    pub(crate) id: String,
    /// Whether it runs and is not paused.
    pub(crate) running: bool,
    /// Whether its health check has failed too often.
    pub(crate) unhealthy: bool,
    /// The pid of its first process on this machine; none where it does not run.
    pub(crate) pid: Option<u32>,
    /// The exit code of its first process.
    pub(crate) exit_code: i64,
    /// Why it could not be started.
    pub(crate) error: String,
    /// The id of its image.
    pub(crate) image_id: String,
    /// Whether the storage driver limits the size of its layer.
    pub(crate) limits_layer: bool,
}

/// A container of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedContainer {
    /// Its name, without the leading slash.
    pub(crate) name: String,
    /// Its labels.
    pub(crate) labels: HashMap<String, String>,
}

impl EngineConnection {
    /// Connects, agrees on a version of the API, and asks for the rest.
    pub(super) async fn open(socket: PathBuf) -> Result<Self, EngineError> {
        let path = socket.to_string_lossy().into_owned();
        let docker = Docker::connect_with_unix(&path, CLIENT_LIMIT_S, API_DEFAULT_VERSION)
            .map_err(|error| EngineError::of(&error, READ_LIMIT))?;
        let docker = limited(READ_LIMIT, docker.negotiate_version()).await?;
        let spoken = docker.client_version();
        if (spoken.major_version, spoken.minor_version)
            < (API_MIN.major_version, API_MIN.minor_version)
        {
            let reason = format!("its API is {spoken}, older than {API_MIN}");
            return Err(EngineError::Refused(reason));
        }
        let docker = with_version(docker, spoken);
        let version = limited(READ_LIMIT, docker.version()).await?;
        let info = limited(LIST_LIMIT, docker.info()).await?;
        Ok(Self {
            facts: EngineFacts::new(socket, spoken.to_string(), &version, info),
            docker,
            lost: AtomicBool::new(false),
        })
    }

    /// What the engine said of itself.
    pub(crate) const fn facts(&self) -> &EngineFacts {
        &self.facts
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.facts.socket
    }

    /// The client, for requests whose answer is a stream.
    pub(crate) const fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Whether a request found that nothing answers any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// The image, if it is on the engine's machine.
    pub(crate) async fn inspect_image(&self, image: &str) -> Result<LocalImage, EngineError> {
        let found = self.request(READ_LIMIT, self.docker.inspect_image(image));
        let found = found.await?;
        let no_id = || EngineError::Malformed(format!("the image {image} has no id"));
        Ok(LocalImage {
            id: found.id.ok_or_else(no_id)?,
            user: found
                .config
                .and_then(|it| it.user)
                .filter(|it| !it.is_empty()),
        })
    }

    /// Fails where there is no such network.
    pub(crate) async fn inspect_network(&self, network: &str) -> Result<(), EngineError> {
        let found = self.docker.inspect_network(network, None);
        self.request(READ_LIMIT, found).await.map(drop)
    }

    /// Creates a container, and returns its id.
    pub(crate) async fn create(
        &self,
        name: &str,
        config: Box<ContainerCreateBody>,
    ) -> Result<String, EngineError> {
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        let create = Box::pin(self.docker.create_container(Some(options), *config));
        Ok(self.request(MAKE_LIMIT, create).await?.id)
    }

    /// Attaches to the standard error of a container, whether or not it runs yet.
    pub(crate) async fn attach(&self, name: &str) -> Result<AttachContainerResults, EngineError> {
        let options = AttachContainerOptionsBuilder::new();
        let options = options.stream(true).stdout(true).stderr(true).build();
        let attach = self.docker.attach_container(name, Some(options));
        self.request(READ_LIMIT, attach).await
    }

    /// Starts a container.
    pub(crate) async fn start(&self, name: &str) -> Result<(), EngineError> {
        let start = self.docker.start_container(name, None);
        self.request(MAKE_LIMIT, start).await
    }

    /// The state of a container.
    pub(crate) async fn inspect(&self, name: &str) -> Result<ContainerStatus, EngineError> {
        self.noted(within(READ_LIMIT, self.tolerant().inspect(name)).await)
    }

    /// Kills and removes a container with its anonymous volumes. One that is not there is no error; one
    /// that is being removed, by a request that was given up, is waited for.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true);
        let remove = self.docker.remove_container(name, Some(options.build()));
        match self.request(REMOVE_LIMIT, remove).await {
            Err(EngineError::NotFound(_)) => Ok(()),
            Err(EngineError::Conflict(_)) => self.wait_until_removed(name).await,
            other => other,
        }
    }

    /// Waits until a container is not there any more.
    async fn wait_until_removed(&self, name: &str) -> Result<(), EngineError> {
        let options = WaitContainerOptionsBuilder::new().condition("removed");
        let mut ends = self.docker.wait_container(name, Some(options.build()));
        let removed = async {
            match ends.next().await {
                // An exit code other than 0 is an error to the library.
                None | Some(Ok(_) | Err(ClientError::DockerContainerWaitError { .. })) => Ok(()),
                Some(Err(error)) => Err(error),
            }
        };
        match self.request(REMOVE_LIMIT, removed).await {
            Err(EngineError::NotFound(_)) => Ok(()),
            other => other,
        }
    }

    /// All containers with this label, whether or not they run.
    pub(crate) async fn list(&self, label: &str) -> Result<Vec<ListedContainer>, EngineError> {
        self.noted(within(LIST_LIMIT, self.tolerant().list(label)).await)
    }

    /// All images that have a name.
    pub(crate) async fn list_images(&self) -> Result<Vec<ImageSummary>, EngineError> {
        let options = ListImagesOptionsBuilder::new().all(false).build();
        let list = self.docker.list_images(Some(options));
        self.request(LIST_LIMIT, list).await
    }

    async fn request<T>(
        &self,
        limit: Duration,
        request: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, EngineError> {
        self.noted(limited(limit, request).await)
    }

    /// Takes note of a connection that was lost.
    fn noted<T>(&self, result: Result<T, EngineError>) -> Result<T, EngineError> {
        if result.as_ref().is_err_and(EngineError::is_disconnected) {
            self.lost.store(true, Ordering::Relaxed);
        }
        result
    }

    fn tolerant(&self) -> TolerantClient<'_> {
        TolerantClient {
            socket: &self.facts.socket,
            api_version: &self.facts.api_version,
        }
    }
}

async fn limited<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, EngineError> {
    let request = async {
        request
            .await
            .map_err(|error| EngineError::of(&error, limit))
    };
    within(limit, request).await
}

async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    let result = timeout(limit, request).await;
    result.unwrap_or(Err(EngineError::TimedOut(limit)))
}
