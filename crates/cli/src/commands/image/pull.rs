//! `ostler image pull`.

use clap::Args;
use ostler_backend_container::ImageStore;

use super::verb::progress;
use crate::error::{CommandError, CommandResult};

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
pub(super) async fn run(images: &ImageStore, args: &ImagePullArgs) -> CommandResult {
    let pulled = images.pull(&args.image, &progress(args.quiet)).await;
    pulled.map_err(|error| CommandError::from(&error))?;
    Ok(0)
}
