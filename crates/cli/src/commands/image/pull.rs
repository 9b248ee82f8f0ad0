//! `ostler image pull`.

use clap::Args;

use super::progress;
use crate::containers::ImageEngine;
use crate::error::CommandResult;

/// What `image pull` takes.
#[derive(Debug, Args)]
pub(crate) struct ImagePullArgs {
    /// The image, by name, or by name and tag or digest
    #[arg(value_name = "IMAGE")]
    image: String,
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Fetches an image.
///
/// # Errors
/// When no container engine answers, or it cannot fetch the image.
pub(super) async fn run(engine: &dyn ImageEngine, args: &ImagePullArgs) -> CommandResult {
    engine.pull(&args.image, progress(args.quiet)).await?;
    Ok(0)
}
