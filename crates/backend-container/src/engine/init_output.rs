//! What a container's init says before it is ready.

use bollard::container::LogOutput;
use futures_util::{Stream, StreamExt as _};
use std::pin::Pin;

use super::connection::EngineConnection;
use super::error::shortened;

/// How much of it is kept, in bytes.
const OUTPUT_BYTES: usize = 1_024;

type OutputStream = Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

/// The output of a container's first process, which no log of the engine keeps.
pub(crate) struct InitOutput {
    /// None where it could not be attached to, or has ended.
    stream: Option<OutputStream>,
    text: Vec<u8>,
}

impl InitOutput {
    /// Attaches to a container. Where that fails, its end is found by other means.
    pub(crate) async fn attach(engine: &EngineConnection, name: &str) -> Self {
        let attached = engine.attach(name).await;
        let stream = attached.inspect_err(|error| {
            tracing::debug!(container = name, %error, "what its init says is not known");
        });
        Self {
            stream: stream.ok().map(|it| it.output),
            text: Vec::new(),
        }
    }

    /// Resolves when the first process has ended; never where it is not attached.
    pub(crate) async fn ended(&mut self) {
        let Some(stream) = &mut self.stream else {
            return std::future::pending().await;
        };
        while let Some(Ok(output)) = stream.next().await {
            let room = OUTPUT_BYTES.saturating_sub(self.text.len());
            let bytes = output.into_bytes();
            self.text.extend(&bytes[..bytes.len().min(room)]);
        }
        self.stream = None;
    }

    /// What it said.
    pub(crate) fn text(&self) -> String {
        shortened(&String::from_utf8_lossy(&self.text))
    }
}
