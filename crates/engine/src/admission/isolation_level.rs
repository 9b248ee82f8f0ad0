//! The isolation level of a request, and the backend that follows from it.

use ostler_model::{BackendName, IsolationLevel};

use super::sandbox_bounds::invalid;
use crate::error::Error;
use crate::request::StartRequest;
use crate::settings::IsolationSettings;

/// The names of the backends.
const BACKENDS: &str = "'local' and 'container'";

/// The isolation level of a request: the one that it names, that of the backend that it names, or
/// the setting's.
///
/// # Errors
/// When there is no such backend, when backend and level contradict each other, and when it requests
/// less than the settings' minimum.
pub fn effective_level(
    settings: &IsolationSettings,
    request: &StartRequest,
) -> Result<IsolationLevel, Error> {
    let backend = request.options.backend.as_ref();
    let in_container = backend.map(is_container).transpose()?;
    let requested = request.options.level;
    let level = match in_container {
        Some(true) => requested.unwrap_or(IsolationLevel::Container),
        Some(false) | None => requested.unwrap_or(settings.default.max(settings.minimum)),
    };
    let is_level_container = level == IsolationLevel::Container;
    if in_container.is_some_and(|it| it != is_level_container) {
        let problem = if is_level_container {
            "the backend 'local' runs nothing in containers; choose another level, or the backend \
             'container'"
        } else {
            "the backend 'container' knows level 'container' only"
        };
        return Err(invalid("isolation level", &level.to_string(), problem));
    }
    if level < settings.minimum {
        let problem = format!("the settings allow no level below '{}'", settings.minimum);
        return Err(invalid("isolation level", &level.to_string(), &problem));
    }
    Ok(level)
}

/// Whether a request is for a container. One that is refused is not.
pub(crate) fn runs_in_container(settings: &IsolationSettings, request: &StartRequest) -> bool {
    matches!(
        effective_level(settings, request),
        Ok(IsolationLevel::Container)
    )
}

fn is_container(backend: &BackendName) -> Result<bool, Error> {
    if *backend == BackendName::container() {
        Ok(true)
    } else if *backend == BackendName::local() {
        Ok(false)
    } else {
        let problem = format!("no such backend; there are {BACKENDS}");
        Err(invalid("backend", &backend.0, &problem))
    }
}
