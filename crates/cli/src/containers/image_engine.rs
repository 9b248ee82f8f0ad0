//! Images, and the state of a container engine.

use std::path::PathBuf;
use std::pin::Pin;

use ostler_model::Timestamp;
use serde::Serialize;

use crate::error::CommandError;

/// A boxed future, so that the trait here stays usable as a trait object.
pub(crate) type ImageFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, CommandError>> + Send + 'a>>;

/// Receives lines about what is under way, each without its newline.
pub(crate) type ProgressSink = Box<dyn Fn(&str) + Send + Sync>;

/// A container engine, for images.
pub(crate) trait ImageEngine: Send + Sync {
    /// The state of the engine, and whether this image is on this machine.
    fn status<'a>(&'a self, image: Option<&'a str>) -> ImageFuture<'a, EngineStatus>;

    /// The images on this machine, the newest first.
    fn list(&self) -> ImageFuture<'_, Vec<ImageRow>>;

    /// Fetches an image from its registry.
    fn pull<'a>(&'a self, image: &'a str, progress: ProgressSink) -> ImageFuture<'a, ()>;

    /// Builds an image from local files; returns its id.
    fn build(&self, request: BuildRequest, progress: ProgressSink) -> ImageFuture<'_, String>;
}

/// A container engine that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct EngineStatus {
    /// Its socket.
    pub(crate) socket: PathBuf,
    /// Its name: `Docker` or `Podman`.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// The version of its API that is spoken.
    pub(crate) api_version: String,
    /// The driver of its images and layers.
    pub(crate) storage_driver: String,
    /// The version of its cgroups.
    pub(crate) cgroup_version: String,
    /// Whether it runs without root.
    pub(crate) rootless: bool,
    /// Whether the image that was asked for is here; none where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image_present: Option<bool>,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ImageRow {
    /// Its names with their tags; none where it has no name.
    pub(crate) names: Vec<String>,
    /// Its id.
    pub(crate) id: String,
    /// Its size in bytes.
    pub(crate) size_bytes: u64,
    /// When it was made.
    pub(crate) created_at: Option<Timestamp>,
}

/// An image to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BuildRequest {
    /// The directory whose files are sent to the engine.
    pub(crate) context: PathBuf,
    /// The file of instructions.
    pub(crate) containerfile: PathBuf,
    /// What to call the image.
    pub(crate) tag: String,
    /// Values of its `ARG` instructions.
    pub(crate) build_args: Vec<(String, String)>,
    /// Whether base images are fetched; without it they must be here.
    pub(crate) pull: bool,
}
