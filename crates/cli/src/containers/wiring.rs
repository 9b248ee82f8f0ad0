//! The backends of the program: the only place that names them.

use std::sync::Arc;

use ostler_backend::{Backend, ContainerError};
use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::Settings;
use ostler_model::ErrorCode;

use super::{BuildRequest, EngineStatus, ImageEngine, ImageFuture, ImageRow, ProgressSink};
use crate::config::Config;
use crate::error::CommandError;
use crate::process_env::ProcessEnv;

/// Opens the backend of an engine with these settings.
///
/// # Errors
/// When its directories cannot be used.
pub(crate) async fn open_backend(
    settings: &Settings,
    _env: &ProcessEnv,
    zygote: ZygoteConfig,
) -> Result<Arc<dyn Backend>, CommandError> {
    let backend = LocalBackend::open(&settings.state_dir, zygote).await;
    let backend =
        backend.map_err(|error| CommandError::new(ErrorCode::Storage, error.to_string()))?;
    Ok(Arc::new(backend))
}

/// The container engine of this configuration, for images.
pub(crate) fn image_engine(_config: &Config, _env: &ProcessEnv) -> Arc<dyn ImageEngine> {
    Arc::new(NoImageEngine)
}

/// Stands for the container engine of a program without one.
#[derive(Debug)]
struct NoImageEngine;

impl NoImageEngine {
    fn refuse<T>() -> Result<T, CommandError> {
        let error = ostler_engine::Error::from(ContainerError::Unsupported);
        Err(CommandError::from(&error))
    }
}

impl ImageEngine for NoImageEngine {
    fn status<'a>(&'a self, _image: Option<&'a str>) -> ImageFuture<'a, EngineStatus> {
        Box::pin(std::future::ready(Self::refuse()))
    }

    fn list(&self) -> ImageFuture<'_, Vec<ImageRow>> {
        Box::pin(std::future::ready(Self::refuse()))
    }

    fn pull<'a>(&'a self, _image: &'a str, _progress: ProgressSink) -> ImageFuture<'a, ()> {
        Box::pin(std::future::ready(Self::refuse()))
    }

    fn build(&self, _request: BuildRequest, _progress: ProgressSink) -> ImageFuture<'_, String> {
        Box::pin(std::future::ready(Self::refuse()))
    }
}
