//! The backends of the program, and the container engine of its configuration: the only place that
//! names them.

use std::sync::Arc;

use ostler_backend::Backend;
use ostler_backend_container::{ContainerBackend, EngineDiscovery, ImageStore};
use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_engine::Settings;
use ostler_engine::settings::ContainerSettings;
use ostler_model::ErrorCode;

use crate::config::Config;
use crate::error::CommandError;
use crate::process_env::ProcessEnv;

/// Opens the backend of an engine with these settings: processes of this machine, and containers of
/// an engine that is looked for when one is needed.
///
/// # Errors
/// When its directories cannot be used.
pub(crate) async fn open_backend(
    settings: &Settings,
    env: &ProcessEnv,
    zygote: ZygoteConfig,
) -> Result<Arc<dyn Backend>, CommandError> {
    let unusable =
        |error: &dyn std::fmt::Display| CommandError::new(ErrorCode::Storage, error.to_string());
    let local =
        LocalBackend::open_with_durability(&settings.state_dir, zygote, settings.durability).await;
    let local = Arc::new(local.map_err(|error| unusable(&error))?);
    let discovery = discovery(&settings.container, env);
    let backend = ContainerBackend::open(&settings.state_dir, discovery, local);
    Ok(Arc::new(backend.map_err(|error| unusable(&error))?))
}

/// The images of the container engine of this configuration.
pub(crate) fn image_store(config: &Config, env: &ProcessEnv) -> ImageStore {
    let settings = config.engine_settings(Vec::new());
    ImageStore::new(discovery(&settings.container, env))
}

fn discovery(settings: &ContainerSettings, env: &ProcessEnv) -> EngineDiscovery {
    let text = |name: &str| Some(env.get(name)?.to_string_lossy().into_owned());
    let configured = settings.socket.as_ref();
    EngineDiscovery {
        configured: configured.map(|socket| socket.to_string_lossy().into_owned()),
        docker_host: text("DOCKER_HOST"),
        container_host: text("CONTAINER_HOST"),
        runtime_dir: env.absolute("XDG_RUNTIME_DIR"),
    }
}
