//! Containers: what the program needs of the backend that runs them.
//!
//! * [`image_engine`]: the requests of `ostler image` and `ostler doctor`, and their answers.
//! * [`wiring`]: the only place that names a backend.

mod image_engine;
mod wiring;

pub(crate) use image_engine::{
    BuildRequest, EngineStatus, ImageEngine, ImageFuture, ImageRow, ProgressSink,
};
pub(crate) use wiring::{image_engine, open_backend};
