//! `ostler export`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use http_body_util::BodyExt as _;
use hyper::Method;
use ostler_api::ExecutionBody;
use ostler_http::rest::LOST_BYTES_HEADER;
use ostler_journal::atomic_file::{AtomicFile, UMASK_MODE};
use ostler_model::ErrorCode;

use super::ids;
use crate::client::{DaemonClient, DaemonResponse, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult, output_failed};
use crate::missing_output::{LossScope, MissingOutput};

/// What `export` takes.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Which execution
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Which format
    #[arg(short, long, value_enum, default_value = "jsonl")]
    format: ExportFormat,
    /// Write to this file, in one step, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The formats.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExportFormat {
    /// A YAML stream
    Yaml,
    /// An Avro object container file
    Avro,
    /// One JSON object per line
    Jsonl,
    /// The bytes the command printed
    Text,
    /// An asciicast, version 2, which every player reads
    Asciicast,
    /// An asciicast, version 3, with the exit status
    AsciicastV3,
    /// The diagnostics of compilers and linters in the output, as SARIF 2.1.0
    Sarif,
    /// The results of tests in the output, as JUnit XML
    Junit,
}

impl ExportFormat {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Yaml => "yaml",
            Self::Avro => "avro",
            Self::Jsonl => "jsonl",
            Self::Text => "text",
            Self::Asciicast => "asciicast",
            Self::AsciicastV3 => "asciicast-v3",
            Self::Sarif => "sarif",
            Self::Junit => "junit",
        }
    }
}

/// Writes the output in the requested format.
///
/// # Errors
/// When it cannot be read or written.
pub(crate) fn run(context: &CliContext, args: &ExportArgs) -> CommandResult {
    let client = context.client();
    block_on(async {
        let rest = format!("/export?format={}", args.format.as_str());
        let path = ids::path(&args.id, &rest);
        let response = match client.request(Method::GET, &path, RequestBody::None).await {
            Ok(answer) => answer,
            Err(error) => return Err(ids::suggest(&client, &args.id, error).await),
        };
        let missing = MissingOutput::of_lost_bytes(response.header_number(&LOST_BYTES_HEADER));
        match &args.output {
            Some(file) => {
                to_file(response, file).await?;
            }
            None => {
                #[expect(clippy::disallowed_methods, reason = "an export is exact")]
                let mut stdout = io::stdout().lock();
                copy(response, &mut stdout, |error| output_failed(&error)).await?;
            }
        }
        check_complete(&client, &args.id, missing).await
    })
}

/// Reports gaps after the export was written completely.
async fn check_complete(client: &DaemonClient, id: &str, missing: MissingOutput) -> CommandResult {
    if missing.missing_bytes(LossScope::Retained) > 0 {
        let path = ids::path(id, "");
        let info: ExecutionBody = client.call(Method::GET, &path, RequestBody::None).await?;
        missing.check(LossScope::Retained, &info)?;
    }
    Ok(0)
}

/// Writes to a temporary file and renames it when it is complete.
async fn to_file(response: DaemonResponse, file: &Path) -> Result<(), CommandError> {
    let failed = |error: io::Error| {
        CommandError::new(
            ErrorCode::Storage,
            format!("{} cannot be written: {error}", file.display()),
        )
    };
    // Never a file of another user, and never through a symbolic link.
    let mut target = AtomicFile::create_unique(file, UMASK_MODE).map_err(failed)?;
    copy(response, &mut target, failed).await?;
    target.commit().map_err(failed)
}

async fn copy(
    response: DaemonResponse,
    target: &mut impl Write,
    failed: impl Fn(io::Error) -> CommandError,
) -> Result<(), CommandError> {
    let (mut body, _connection) = response.into_parts();
    while let Some(piece) = body.frame().await {
        let piece = piece.map_err(|error| CommandError::Disconnected(error.to_string()))?;
        if let Ok(data) = piece.into_data() {
            target.write_all(&data).map_err(&failed)?;
        }
    }
    target.flush().map_err(failed)
}
