//! One engine, and the requests that are made to it. Each has a time limit.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::container::AttachContainerResults;
use bollard::errors::Error as ClientError;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerStateStatusEnum, HealthStatusEnum,
    ImageSummary,
};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, ListContainersOptionsBuilder,
    ListImagesOptionsBuilder, RemoveContainerOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, ClientVersion, Docker};
use tokio::time::timeout;

use super::api_version::with_version;
use super::error::EngineError;
use super::facts::EngineFacts;

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
        config: ContainerCreateBody,
    ) -> Result<String, EngineError> {
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        let create = self.docker.create_container(Some(options), config);
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
        let inspect = self.docker.inspect_container(name, None);
        Ok(status(self.request(READ_LIMIT, inspect).await?))
    }

    /// Kills and removes a container with its anonymous volumes. One that is not there, or is being
    /// removed, is no error.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true);
        let remove = self.docker.remove_container(name, Some(options.build()));
        match self.request(REMOVE_LIMIT, remove).await {
            Err(EngineError::NotFound(_) | EngineError::Conflict(_)) => Ok(()),
            other => other,
        }
    }

    /// All containers with this label, whether or not they run.
    pub(crate) async fn list(&self, label: &str) -> Result<Vec<ListedContainer>, EngineError> {
        let filters = HashMap::from([("label", vec![label])]);
        let options = ListContainersOptionsBuilder::new().all(true);
        let options = options.filters(&filters).build();
        let list = self.docker.list_containers(Some(options));
        let found = self.request(LIST_LIMIT, list).await?.into_iter();
        let found = found.filter_map(|it| {
            let name = it.names?.into_iter().next()?;
            Some(ListedContainer {
                name: name.trim_start_matches('/').to_owned(),
                labels: it.labels.unwrap_or_default(),
            })
        });
        Ok(found.collect())
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
        let result = limited(limit, request).await;
        if result.as_ref().is_err_and(EngineError::is_disconnected) {
            self.lost.store(true, Ordering::Relaxed);
        }
        result
    }
}

async fn limited<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, EngineError> {
    match timeout(limit, request).await {
        Ok(result) => result.map_err(|error| EngineError::of(&error, limit)),
        Err(_) => Err(EngineError::TimedOut(limit)),
    }
}

fn status(found: ContainerInspectResponse) -> ContainerStatus {
    let state = found.state.unwrap_or_default();
    let health = state.health.and_then(|it| it.status);
    // Podman says `running` of a paused container, too.
    let paused =
        state.paused.unwrap_or(false) || state.status == Some(ContainerStateStatusEnum::PAUSED);
    let running = state.running.unwrap_or(false) && !state.restarting.unwrap_or(false);
    let storage = found.host_config.and_then(|it| it.storage_opt);
    let pid = state.pid.and_then(|pid| u32::try_from(pid).ok());
    ContainerStatus {
        id: found.id.unwrap_or_default(),
        running: running && !paused && !state.dead.unwrap_or(false),
        unhealthy: health == Some(HealthStatusEnum::UNHEALTHY),
        pid: pid.filter(|pid| *pid != 0),
        exit_code: state.exit_code.unwrap_or(0),
        error: state.error.unwrap_or_default(),
        image_id: found.image.unwrap_or_default(),
        limits_layer: storage.is_some_and(|it| it.contains_key("size")),
    }
}
