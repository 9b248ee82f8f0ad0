//! Long calls: progress, cancellation, tasks and questions, over raw JSON streams of both protocol
//! eras.

mod cancel;
mod elicit;
mod http;
mod progress;
mod sync;
mod tasks;
mod wire;
