//! The verbs of `ostler image`.

use clap::Subcommand;

use super::{build, list, pull};
use crate::containers;
use crate::context::{CliContext, block_on};
use crate::error::CommandResult;

/// The verbs of `image`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageVerb {
    /// Build an image from local files; what it is based on must be here, unless --pull is given
    Build(build::ImageBuildArgs),
    /// Fetch an image from its registry; a start never does
    Pull(pull::ImagePullArgs),
    /// List the images on this machine, the newest first
    #[command(visible_alias = "list")]
    Ls(list::ImageListArgs),
}

/// Builds, fetches or lists images.
///
/// # Errors
/// When no container engine answers, or it refuses.
pub(crate) fn run(context: &CliContext, verb: ImageVerb) -> CommandResult {
    let images = containers::image_store(&context.config, &context.env);
    match verb {
        ImageVerb::Build(args) => build::run(context, &images, args),
        ImageVerb::Pull(args) => block_on(pull::run(&images, &args)),
        ImageVerb::Ls(args) => block_on(list::run(&images, &args)),
    }
}

/// What prints progress on standard error, unless it is not wanted.
pub(super) fn progress(quiet: bool) -> fn(&str) {
    if quiet { |_line| () } else { crate::print_note }
}
