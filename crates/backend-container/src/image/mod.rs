//! Images: listing them, building them from local files, and fetching them where that is asked for.

mod build;
mod containerfile;
mod context;
mod ignore;
mod progress;
mod store;

pub use build::BuildRequest;
pub use progress::ProgressSink;
pub use store::{EngineStatus, ImageError, ImageStore, ImageSummary};
