//! `ostler export`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use http_body_util::BodyExt as _;
use hyper::Method;
use ostler_api::ExecutionBody;
use ostler_http::rest::{EXPORT_ERROR_TRAILER, LOST_BYTES_HEADER};
use ostler_journal::atomic_file::{AtomicFile, UMASK_MODE};
use ostler_model::ErrorCode;

use super::attached_run::ForwardedSignals;
use super::ids;
use crate::client::{DaemonClient, DaemonResponse, RequestBody, number_in};
use crate::context::{CliContext, block_on};
use crate::error::{CommandError, CommandResult, output_failed};
use crate::missing_output::{LossScope, MissingOutput};

/// The bits of a file's mode that chmod(2) sets.
const PERMISSIONS: u32 = 0o7777;

/// What `export` takes.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Which execution
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Which format
    #[arg(short, long, value_enum, default_value = "jsonl")]
    format: ExportFormat,
    /// Write to this file, in one step, instead of standard output; to a device or a pipe as it comes
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
    refuse_directory(args.output.as_deref())?;
    let client = context.client();
    block_on(async {
        let rest = format!("/export?format={}", args.format.as_str());
        let path = ids::path(&args.id, &rest);
        let response = match client.request(Method::GET, &path, RequestBody::None).await {
            Ok(answer) => answer,
            Err(error) => return Err(ids::suggest(&client, &args.id, error).await),
        };
        let lost_before = response.header_number(&LOST_BYTES_HEADER);
        let written = match args.output.as_deref().map(ExportTarget::of) {
            Some(ExportTarget::File { path, mode }) => {
                let mut signals = ForwardedSignals::install()?;
                tokio::select! {
                    written = to_file(response, path, mode) => written,
                    // The temporary file goes with what writes it.
                    code = signals.wait_for_exit() => return Ok(code),
                }
            }
            Some(ExportTarget::Device(path)) => to_device(response, path).await,
            Some(ExportTarget::Stdout) | None => {
                #[expect(clippy::disallowed_methods, reason = "an export is exact")]
                let mut stdout = io::stdout().lock();
                copy(response, &mut stdout, |error| output_failed(&error)).await
            }
        };
        let lost = match written {
            Ok(lost) => lost,
            Err(error) => return Err(cause_of(&client, &args.id, error).await),
        };
        let missing = MissingOutput::of_lost_bytes(lost.unwrap_or(lost_before));
        check_complete(&client, &args.id, missing).await
    })
}

/// Refuses a directory as what is written to. A link to one is replaced.
fn refuse_directory(output: Option<&Path>) -> Result<(), CommandError> {
    let is_dir = |path: &&Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    match output.filter(is_dir) {
        Some(path) => {
            let message = format!("--output '{}': it is a directory", path.display());
            Err(CommandError::value(message).with_hint("name a file in it"))
        }
        None => Ok(()),
    }
}

/// Why an export broke off: the execution may have been removed meanwhile.
async fn cause_of(client: &DaemonClient, id: &str, error: CommandError) -> CommandError {
    let is_of_daemon = match &error {
        CommandError::Disconnected(_) => true,
        CommandError::Failure { code, .. } => *code == ErrorCode::OutputRetrieval,
        CommandError::BrokenPipe => false,
    };
    if !is_of_daemon {
        return error;
    }
    let path = ids::path(id, "");
    let info = client
        .call::<ExecutionBody>(Method::GET, &path, RequestBody::None)
        .await;
    match info {
        Err(CommandError::Disconnected(_)) | Ok(_) => error,
        Err(cause) => cause,
    }
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

/// What an export is written to.
#[derive(Debug, PartialEq, Eq)]
enum ExportTarget<'a> {
    /// A file that is replaced when the export is complete, with the mode that it has or gets.
    File { path: &'a Path, mode: u32 },
    /// A device, a pipe or another open descriptor: written to, and never replaced.
    Device(&'a Path),
    /// Standard output.
    Stdout,
}

impl<'a> ExportTarget<'a> {
    fn of(path: &'a Path) -> Self {
        /// The links to open descriptors, see proc(5).
        const DESCRIPTORS: [&str; 4] = ["/dev/fd", "/dev/stderr", "/dev/stdout", "/proc"];
        if path.as_os_str() == "-" {
            return Self::Stdout;
        }
        let Ok(meta) = path.metadata() else {
            return Self::File {
                path,
                mode: UMASK_MODE,
            };
        };
        let is_link = path.is_symlink();
        let is_descriptor = is_link && DESCRIPTORS.iter().any(|top| path.starts_with(top));
        let is_device = !(is_link || meta.is_file() || meta.is_dir());
        if is_descriptor || is_device {
            return Self::Device(path);
        }
        // Any other link may be planted: it is replaced, and says nothing about the mode.
        let mode = if is_link {
            UMASK_MODE
        } else {
            meta.mode() & PERMISSIONS
        };
        Self::File { path, mode }
    }
}

fn write_error(path: &Path) -> impl Fn(io::Error) -> CommandError {
    let path = path.display().to_string();
    move |error| {
        CommandError::new(
            ErrorCode::Storage,
            format!("{path} cannot be written: {error}"),
        )
    }
}

/// Writes to a temporary file and renames it when it is complete; returns as [`copy`].
async fn to_file(
    response: DaemonResponse,
    file: &Path,
    mode: u32,
) -> Result<Option<u64>, CommandError> {
    let failed = write_error(file);
    // Never a file of another user, and never through a symbolic link.
    let mut target = AtomicFile::create_unique(file, mode).map_err(&failed)?;
    let lost = copy(response, &mut target, &failed).await?;
    target.commit().map_err(failed)?;
    Ok(lost)
}

/// Writes to what is there; returns as [`copy`].
async fn to_device(response: DaemonResponse, path: &Path) -> Result<Option<u64>, CommandError> {
    let failed = write_error(path);
    let device = OpenOptions::new().append(true).open(path);
    let mut device = device.map_err(&failed)?;
    copy(response, &mut device, failed).await
}

/// Copies the body; returns how many bytes are missing in it because they were lost, where the daemon
/// says so.
///
/// # Errors
/// Where it breaks off, or the daemon could not go on.
async fn copy(
    response: DaemonResponse,
    target: &mut impl Write,
    failed: impl Fn(io::Error) -> CommandError,
) -> Result<Option<u64>, CommandError> {
    let mut lost = None;
    let (mut body, _connection) = response.into_parts();
    while let Some(piece) = body.frame().await {
        let piece = piece.map_err(|error| CommandError::Disconnected(error.to_string()))?;
        match piece.into_data() {
            Ok(data) => target.write_all(&data).map_err(&failed)?,
            Err(other) => {
                let fields = other.into_trailers().unwrap_or_default();
                if let Some(cause) = fields.get(&EXPORT_ERROR_TRAILER) {
                    let cause = String::from_utf8_lossy(cause.as_bytes());
                    let message = format!("the export is incomplete: {cause}");
                    return Err(CommandError::new(ErrorCode::OutputRetrieval, message));
                }
                lost = number_in(&fields, &LOST_BYTES_HEADER);
            }
        }
    }
    target.flush().map_err(failed)?;
    Ok(lost)
}
