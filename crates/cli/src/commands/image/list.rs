//! `ostler image ls`.

use clap::Args;
use ostler_backend_container::{ImageError, ImageStore, ImageSummary};
use ostler_model::Timestamp;
use ostler_render::isolation::format_bytes;

use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, TextTable, cells, format_age, print_json};

/// The displayed characters of an id, as container engines have them.
const ID_CHARS: usize = 12;
/// The name of what makes an id.
const DIGEST: &str = "sha256:";

/// What `image ls` takes.
#[derive(Debug, Args)]
pub(crate) struct ImageListArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Lists the images on this machine.
///
/// # Errors
/// When no container engine answers.
pub(super) async fn run(images: &ImageStore, args: &ImageListArgs) -> CommandResult {
    let listed = images.list().await;
    let images = listed.map_err(|error| CommandError::from(&ImageError::from(error)))?;
    if args.json {
        print_json(&images)?;
        return Ok(0);
    }
    print(&images, Timestamp::now())?;
    Ok(0)
}

fn print(images: &[ImageSummary], now: Timestamp) -> Result<(), CommandError> {
    let mut table = TextTable::new(&["IMAGE", "ID", "SIZE", "AGE"]);
    for image in images {
        let age = image.created_at.map(|at| format_age(at, now));
        let names = if image.names.is_empty() {
            "-".to_owned()
        } else {
            image.names.join(", ")
        };
        table.push_row(cells![
            names,
            short_id(&image.id),
            format_bytes(image.size_bytes),
            age.unwrap_or_default()
        ]);
    }
    let mut out = StdoutWriter::new();
    table.print(&mut out)?;
    out.flush()
}

fn short_id(id: &str) -> String {
    let digits = id.strip_prefix(DIGEST).unwrap_or(id);
    digits.chars().take(ID_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_shown_as_engines_show_it() {
        let id = "sha256:0123456789abcdef0123";
        assert_eq!(short_id(id), "0123456789ab");
        assert_eq!(short_id("abc"), "abc");
    }
}
