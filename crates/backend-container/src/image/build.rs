//! Building an image from local files.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::errors::Error as ClientError;
use bollard::models::BuildInfo;
use bollard::query_parameters::{BuildImageOptions, BuildImageOptionsBuilder};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use ostler_backend::ContainerError;
use ostler_sys::regular_file;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

use super::containerfile::base_images;
use super::context::{BuildContextError, write_archive};
use super::progress::{self, ProgressSink};
use super::store::ImageError;
use crate::engine::{EngineConnection, EngineError, shortened};
use crate::pool::local_image;

/// How long a build may take.
const BUILD_LIMIT: Duration = Duration::from_secs(3_600);
/// How many chunks of a context wait for the engine.
const CHUNKS_MAX: usize = 8;
/// The largest Containerfile, in bytes.
const CONTAINERFILE_BYTES: u64 = 1024 * 1024;

/// What to build an image from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRequest {
    /// The directory with the files.
    pub context: PathBuf,
    /// The Containerfile, by its path in that directory.
    pub containerfile: String,
    /// The name of the image.
    pub tag: String,
    /// Values of variables.
    pub build_args: BTreeMap<String, String>,
    /// The network of `RUN`; none is the engine's default.
    pub network: Option<String>,
    /// Whether images that it is built from may be fetched.
    pub pull: bool,
}

/// Builds it.
///
/// # Errors
/// As [`ImageStore::build`](super::ImageStore::build).
pub(super) async fn build(
    engine: &EngineConnection,
    request: &BuildRequest,
    sink: ProgressSink<'_>,
) -> Result<(), ImageError> {
    if !request.pull {
        check_bases(engine, request).await?;
    }
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    let (context, containerfile) = (request.context.clone(), request.containerfile.clone());
    let errors = sender.clone();
    let archive = TaskTracker::new().spawn_blocking(move || {
        let written = write_archive(&context, &containerfile, sender);
        if let Err(error) = &written {
            // Ends the request: what was sent so far is no archive.
            let _closed = errors.blocking_send(Err(io::Error::other(error.to_string())));
        }
        written
    });
    let body = bollard::body_try_stream(chunks(receiver));
    let built = {
        let docker = engine.docker();
        follow(docker.build_image(options(request), None, Some(body)), sink).await
    };
    match archive.await {
        Ok(Err(error @ (BuildContextError::Read { .. } | BuildContextError::TooLarge))) => {
            Err(ImageError::Context(error.to_string()))
        }
        Ok(Ok(()) | Err(BuildContextError::NotRead)) | Err(_) => built,
    }
}

/// Fails where an image that the build starts from is not on the engine's machine.
async fn check_bases(engine: &EngineConnection, request: &BuildRequest) -> Result<(), ImageError> {
    let path = request.context.join(&request.containerfile);
    let text = read_containerfile(&path).map_err(|error| {
        ImageError::Context(format!("{} cannot be read: {error}", path.display()))
    })?;
    for image in base_images(&text, &request.build_args) {
        match local_image(engine, &image).await {
            Ok(_) => {}
            Err(ContainerError::NoImage { image }) => {
                return Err(ImageError::MissingBase { image });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn read_containerfile(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = regular_file::open(path)?;
    file.take(CONTAINERFILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn options(request: &BuildRequest) -> BuildImageOptions {
    let build_args: HashMap<&str, &str> = request
        .build_args
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let options = BuildImageOptionsBuilder::new()
        .dockerfile(&request.containerfile)
        .t(&request.tag)
        .rm(true)
        .forcerm(true)
        .buildargs(&build_args);
    match &request.network {
        Some(network) => options.networkmode(network).build(),
        None => options.build(),
    }
}

/// What arrives in a channel, as a stream.
fn chunks(
    receiver: mpsc::Receiver<io::Result<Bytes>>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    futures_util::stream::unfold(receiver, |mut receiver| async move {
        let chunk = receiver.recv().await?;
        Some((chunk, receiver))
    })
}

/// Passes on what a build says until its end.
async fn follow(
    messages: impl Stream<Item = Result<BuildInfo, ClientError>>,
    sink: ProgressSink<'_>,
) -> Result<(), ImageError> {
    let mut messages = std::pin::pin!(messages);
    let deadline = Instant::now() + BUILD_LIMIT;
    let failed = |text: String| ImageError::Build(shortened(&text));
    loop {
        let message = timeout_at(deadline, messages.next()).await;
        let message = message.map_err(|_| ImageError::TimedOut(BUILD_LIMIT))?;
        let Some(message) = message else {
            return Ok(());
        };
        let message =
            message.map_err(|error| failed(EngineError::of(&error, BUILD_LIMIT).to_string()))?;
        for line in progress::of_build(message).map_err(failed)? {
            sink(&line);
        }
    }
}
