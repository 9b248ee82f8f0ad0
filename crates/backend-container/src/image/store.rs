//! [`ImageStore`]: the images of the engine.

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt as _;
use ostler_backend::ContainerError;
use ostler_model::{CapabilitySet, Timestamp};
use serde::Serialize;
use tokio::time::timeout;

use super::build::{self, BuildRequest};
use super::progress::{self, ProgressSink};
use crate::capabilities::container_capabilities;
use crate::engine::{EngineClient, EngineDiscovery, EngineError, EngineFacts, shortened};
use crate::pool::local_image;
use crate::reference;

/// How long a fetch may make no progress.
const PULL_SILENCE: Duration = Duration::from_secs(120);

/// The images of an engine.
#[derive(Debug, Clone)]
pub struct ImageStore {
    engine: Arc<EngineClient>,
}

/// An image that is on the engine's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageSummary {
    /// Its id.
    pub id: String,
    /// Its names.
    pub names: Vec<String>,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// When it was made.
    pub created_at: Option<Timestamp>,
}

/// The engine, as `doctor` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineStatus {
    /// What it says of itself.
    pub facts: EngineFacts,
    /// What containers of it enforce, beside processes of this machine.
    pub capabilities: CapabilitySet,
    /// Whether the image is there; none where none was asked for.
    pub has_image: Option<bool>,
}

/// An image that could not be built or fetched.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The engine cannot be reached.
    #[error(transparent)]
    Engine(#[from] ContainerError),
    /// An image that the build starts from is not there, and may not be fetched.
    #[error("it is built from '{image}', which is not on this machine and was not to be pulled")]
    MissingBase {
        /// The image.
        image: String,
    },
    /// A file cannot be read, or there is too much.
    #[error("{0}")]
    Context(String),
    /// No image can have this name.
    #[error("'{0}' is not the name of an image")]
    InvalidName(String),
    /// A step of the build failed.
    #[error("the build failed: {0}")]
    Build(String),
    /// The image could not be fetched.
    #[error("'{image}' could not be pulled: {reason}")]
    Pull {
        /// The image.
        image: String,
        /// The engine's reason.
        reason: String,
    },
    /// It took too long.
    #[error("no progress within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl ImageStore {
    /// The images of the engine that is found.
    #[must_use]
    pub fn new(discovery: EngineDiscovery) -> Self {
        Self::over(Arc::new(EngineClient::new(discovery)))
    }

    pub(crate) const fn over(engine: Arc<EngineClient>) -> Self {
        Self { engine }
    }

    /// What `doctor` shows: the engine, what its containers enforce where processes of this machine
    /// are enforced `local`, and whether this image is there.
    ///
    /// # Errors
    /// When no engine answers.
    pub async fn status(
        &self,
        local: &CapabilitySet,
        image: Option<&str>,
    ) -> Result<EngineStatus, ContainerError> {
        let engine = self.engine.connect().await?;
        let has_image = match image {
            None => None,
            Some(image) => match local_image(&engine, image).await {
                Ok(_) => Some(true),
                Err(ContainerError::NoImage { .. }) => Some(false),
                Err(error) => return Err(error),
            },
        };
        let facts = engine.facts().clone();
        Ok(EngineStatus {
            capabilities: container_capabilities(local, &facts),
            facts,
            has_image,
        })
    }

    /// The images that have a name.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub async fn list(&self) -> Result<Vec<ImageSummary>, ContainerError> {
        let engine = self.engine.connect().await?;
        let images = engine.list_images().await;
        let images = images.map_err(|error| error.into_container_error(engine.socket()))?;
        let images = images.into_iter().map(|it| ImageSummary {
            id: it.id,
            names: it.repo_tags,
            size_bytes: u64::try_from(it.size).unwrap_or(0),
            created_at: Timestamp::from_second(it.created).ok(),
        });
        Ok(images.collect())
    }

    /// Fetches an image from its registry.
    ///
    /// # Errors
    /// When the engine cannot, or makes no progress.
    pub async fn pull(&self, image: &str, sink: ProgressSink<'_>) -> Result<(), ImageError> {
        if !reference::is_image(image) {
            return Err(ImageError::InvalidName(image.to_owned()));
        }
        let engine = self.engine.connect().await?;
        let options = CreateImageOptionsBuilder::new().from_image(&with_tag(image));
        let docker = engine.docker();
        let mut pulled = std::pin::pin!(docker.create_image(Some(options.build()), None, None));
        let failed = |reason: String| ImageError::Pull {
            image: image.to_owned(),
            reason: shortened(&reason),
        };
        loop {
            let message = timeout(PULL_SILENCE, pulled.next()).await;
            let message = message.map_err(|_| ImageError::TimedOut(PULL_SILENCE))?;
            let Some(message) = message else {
                return Ok(());
            };
            let message = message
                .map_err(|error| failed(EngineError::of(&error, PULL_SILENCE).to_string()))?;
            if let Some(line) = progress::of_pull(message).map_err(failed)? {
                sink(&line);
            }
        }
    }

    /// Builds an image from local files, by the engine's classic builder; returns its id.
    ///
    /// # Errors
    /// When an image that it is built from is not there and may not be fetched, a file cannot be
    /// read, or a step fails.
    pub async fn build(
        &self,
        request: &BuildRequest,
        sink: ProgressSink<'_>,
    ) -> Result<String, ImageError> {
        if !reference::is_image(&request.tag) {
            return Err(ImageError::InvalidName(request.tag.clone()));
        }
        let engine = self.engine.connect().await?;
        build::build(&engine, request, sink).await?;
        Ok(local_image(&engine, &request.tag).await?.id)
    }
}

/// With a tag: without one, the engine would fetch all.
fn with_tag(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if name.contains([':', '@']) {
        image.to_owned()
    } else {
        format!("{image}:latest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tag_is_fetched() {
        for (image, expected) in [
            ("a", "a:latest"),
            ("r.example:5000/a", "r.example:5000/a:latest"),
            ("a:1", "a:1"),
            ("a@sha256:00", "a@sha256:00"),
        ] {
            assert_eq!(with_tag(image), expected);
        }
    }
}
