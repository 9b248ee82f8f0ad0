//! `ostler image build`.

use std::path::{Path, PathBuf};

use clap::Args;
use ostler_backend_container::{BuildRequest, ImageStore};
use ostler_model::ErrorCode;

use super::verb::progress;
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult};
use crate::output::StdoutWriter;

/// The names of the file of instructions, in the order in which they are looked for.
const CONTAINERFILES: [&str; 2] = ["Containerfile", "Dockerfile"];

/// What `image build` takes.
#[derive(Debug, Args)]
pub(crate) struct ImageBuildArgs {
    /// The directory whose files the instructions may copy; here unless given
    #[arg(value_name = "DIR", default_value = ".")]
    context: PathBuf,
    /// The file of instructions; DIR/Containerfile or DIR/Dockerfile unless given
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What to call the image; container.image unless given
    #[arg(short, long, value_name = "NAME")]
    tag: Option<String>,
    /// The value of an ARG instruction; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = build_arg)]
    build_arg: Vec<(String, String)>,
    /// The network of RUN instructions; the engine's default unless given
    #[arg(long, value_name = "NAME")]
    network: Option<String>,
    /// Fetch the images that it is based on
    #[arg(long)]
    pull: bool,
    /// Print the id only
    #[arg(short, long)]
    quiet: bool,
}

impl ImageBuildArgs {
    /// The request, and whether it is quiet.
    ///
    /// # Errors
    /// When there is no file of instructions, or no name for the image.
    fn into_request(self, default_tag: Option<String>) -> Result<BuildRequest, CommandError> {
        let containerfile = match self.file {
            Some(file) => file,
            None => find_containerfile(&self.context)?,
        };
        let tag = self.tag.or(default_tag).ok_or_else(|| {
            CommandError::value("the image has no name")
                .with_hint("write --tag NAME, or set container.image")
        })?;
        Ok(BuildRequest {
            containerfile: within(&self.context, &containerfile)?,
            context: self.context,
            tag,
            build_args: self.build_arg.into_iter().collect(),
            network: self.network,
            pull: self.pull,
        })
    }
}

/// Builds an image, and prints its id.
///
/// # Errors
/// When there is nothing to build from, no container engine answers, or the build fails.
pub(super) fn run(
    context: &CliContext,
    images: &ImageStore,
    args: ImageBuildArgs,
) -> CommandResult {
    let quiet = args.quiet;
    let request = args.into_request(context.config.container_image())?;
    let progress = progress(quiet);
    let id = block_on(async {
        let built = images.build(&request, &progress).await;
        built.map_err(|error| CommandError::from(&error))
    })?;
    let mut out = StdoutWriter::new();
    out.write_line(&id)?;
    out.flush()?;
    Ok(0)
}

fn find_containerfile(directory: &Path) -> Result<PathBuf, CommandError> {
    let candidates = CONTAINERFILES.iter().map(|name| directory.join(name));
    let mut found = candidates.filter(|path| path.is_file());
    found.next().ok_or_else(|| {
        let names = CONTAINERFILES.join(" or ");
        let message = format!("{}: there is no {names}", directory.display());
        CommandError::new(ErrorCode::Value, message).with_hint("name the file with --file")
    })
}

/// The path of a file from a directory that it is in.
fn within(directory: &Path, file: &Path) -> Result<String, CommandError> {
    let canonical = |path: &Path| {
        path.canonicalize().map_err(|error| {
            CommandError::new(ErrorCode::Value, format!("{}: {error}", path.display()))
        })
    };
    let (directory, found) = (canonical(directory)?, canonical(file)?);
    let relative = found.strip_prefix(&directory).ok().and_then(Path::to_str);
    relative.map(str::to_owned).ok_or_else(|| {
        let message = format!("{} is not in {}", file.display(), directory.display());
        CommandError::value(message).with_hint("the engine is sent the files of that directory")
    })
}

/// Parses `NAME=VALUE`.
fn build_arg(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("write NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(context: &Path) -> ImageBuildArgs {
        ImageBuildArgs {
            context: context.to_owned(),
            file: None,
            tag: None,
            build_arg: Vec::new(),
            network: None,
            pull: false,
            quiet: false,
        }
    }

    #[test]
    fn the_file_is_found_and_the_name_is_the_settings() {
        let directory = tempfile::tempdir().unwrap();
        let missing = args(directory.path()).into_request(None).unwrap_err();
        assert!(missing.to_string().contains("Containerfile or Dockerfile"));
        std::fs::write(directory.path().join("Dockerfile"), "FROM scratch\n").unwrap();
        let unnamed = args(directory.path()).into_request(None).unwrap_err();
        assert!(unnamed.to_string().contains("no name"));
        let request = args(directory.path()).into_request(Some("work".to_owned()));
        let request = request.unwrap();
        assert_eq!(request.tag, "work");
        assert_eq!(request.containerfile, "Dockerfile");
    }

    #[test]
    fn an_argument_has_a_name() {
        assert_eq!(build_arg("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert!(build_arg("=b").is_err() && build_arg("A").is_err());
    }
}
