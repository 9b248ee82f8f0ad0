//! `ostler service import`.

use std::cell::Cell;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ostler_engine::detection::{DetectionQuery, DetectionTable, DiskFiles};
use ostler_engine::service::import::{self, FILE_BYTES, ImportContext, ImportResult};
use ostler_engine::service::manifest;
use ostler_model::{ByteString, Command, ServiceKind};
use ostler_render::clean;
use ostler_sys::regular_file;

use crate::argument_file;
use crate::context::CliContext;
use crate::error::{CommandError, CommandResult};
use crate::output::StdoutWriter;

/// The name of the file that is written.
const FILE: &str = "ostler.toml";
/// The exit code for a file without anything to import.
const EXIT_NONE: u8 = 1;

/// What `import` takes.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What it is; told from its name unless given
    #[arg(long, value_enum)]
    kind: Option<ImportKind>,
    /// Append the definitions to the ostler.toml here, rather than print them
    #[arg(long)]
    write: bool,
    /// The directory of the ostler.toml; here unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A Procfile, package.json or compose file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only these of its services, as the file calls them
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ImportKind {
    Procfile,
    Package,
    Compose,
}

/// Prints or writes the definitions in a file; what cannot be imported is reported on standard
/// error.
///
/// # Errors
/// A file that cannot be read or written, and names that are defined already.
pub(super) fn run(_context: &CliContext, args: &ImportArgs) -> CommandResult {
    let here = std::env::current_dir().map_err(|error| failed(Path::new("."), &error))?;
    let target = here.join(args.cwd.as_deref().unwrap_or(Path::new("")));
    let file = here.join(&args.file);
    let kind = args.kind.or_else(|| kind_of(&file)).ok_or_else(|| {
        CommandError::value(format!(
            "{} is no file that is known by its name",
            args.file.display()
        ))
        .with_hint("say what it is: --kind procfile, package or compose")
    })?;
    let mut imported = read_import(&file, kind, &target, &args.file)?;
    select(&mut imported, &args.names)?;
    for skipped in &imported.omissions {
        // A file that the imported one names is relative to it.
        let path = skipped.file.as_ref().map(|it| args.file.with_file_name(it));
        let path = path.as_deref().unwrap_or(&args.file).display();
        let location = format!("{}:{}", clean(&path.to_string()), skipped.line);
        crate::print_note(&format!(
            "not taken over: {location}: {}: {}",
            clean(&skipped.item),
            clean(&skipped.reason)
        ));
    }
    if imported.services.is_empty() {
        crate::print_note("there is nothing to take over");
        return Ok(EXIT_NONE);
    }
    let text = import::to_toml(&imported);
    if args.write {
        write(&target, &text, &imported)?;
    } else {
        let mut out = StdoutWriter::new();
        for line in text.lines() {
            out.write_line(line)?;
        }
        out.flush()?;
    }
    Ok(0)
}

fn kind_of(file: &Path) -> Option<ImportKind> {
    let name = file.file_name()?.to_string_lossy().to_lowercase();
    let ends = |ending: &str| {
        file.extension()
            .is_some_and(|it| it.eq_ignore_ascii_case(ending))
    };
    match &*name {
        _ if name.starts_with("procfile") => Some(ImportKind::Procfile),
        "package.json" => Some(ImportKind::Package),
        _ if ends("yml") || ends("yaml") => Some(ImportKind::Compose),
        _ => None,
    }
}

fn read_import(
    file: &Path,
    kind: ImportKind,
    target: &Path,
    display_name: &Path,
) -> Result<ImportResult, CommandError> {
    let text = read_limited(file).map_err(|error| failed(file, &error))?;
    let from = file.parent().unwrap_or(Path::new("/"));
    let dir = from.strip_prefix(target).unwrap_or(from).to_string_lossy();
    let has_variables = Cell::new(false);
    let context = ImportContext {
        dir: &dir,
        read: &|name| {
            let text = read_limited(&from.join(name))?;
            has_variables.set(true);
            Ok(text)
        },
        exists: &|name| from.join(name).exists(),
    };
    let read = match kind {
        ImportKind::Procfile => import::procfile(&text, context),
        ImportKind::Package => import::package(&text, context, &|command| is_server(command, from)),
        ImportKind::Compose => import::compose(&text, context),
    };
    if has_variables.get() {
        crate::print_note(
            "note: values of files of variables, such as .env, are written out as text; what is \
             secret belongs into `secrets` before anybody else gets the ostler.toml",
        );
    }
    read.map_err(|error| CommandError::value(format!("{}:{error}", display_name.display())))
}

fn read_limited(file: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    // One byte more than the limit: a file that is too long is refused, not cut.
    let limit = u64::try_from(FILE_BYTES + 1).unwrap_or(u64::MAX);
    argument_file::open(file)?
        .take(limit)
        .read_to_string(&mut text)?;
    Ok(text)
}

fn is_server(command: &str, cwd: &Path) -> bool {
    let command = Command::Shell {
        shell: ByteString::from("/bin/sh"),
        script: ByteString::from(command),
    };
    let subject = DetectionQuery {
        command: &command,
        cwd,
        env: &[],
    };
    let detected = DetectionTable::shipped().detect(subject, &DiskFiles);
    detected.is_some_and(|it| it.ready.kind != ServiceKind::Watcher)
}

fn select(imported: &mut ImportResult, names: &[String]) -> Result<(), CommandError> {
    let has = |name: &String| imported.services.iter().any(|it| it.original == *name);
    if let Some(unknown) = names.iter().find(|name| !has(name)) {
        let available: Vec<&str> = imported.services.iter().map(|it| &*it.original).collect();
        let message = format!(
            "no service '{unknown}' can be taken over; there are: {}",
            available.join(", ")
        );
        return Err(CommandError::value(message));
    }
    if !names.is_empty() {
        imported.services.retain(|it| names.contains(&it.original));
        imported.omissions.clear();
    }
    Ok(())
}

/// Appends the definitions; refuses if a name is already defined, or if the result would be
/// invalid.
fn write(target: &Path, text: &str, imported: &ImportResult) -> Result<(), CommandError> {
    let file = target.join(FILE);
    let existing = match regular_file::open(&file).and_then(std::io::read_to_string) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(&file, &error)),
    };
    let invalid = |error| CommandError::value(format!("{}: {error}", file.display()));
    let defined = manifest::parse(&existing, target).map_err(invalid)?;
    let duplicates: Vec<&str> = imported
        .services
        .iter()
        .map(|it| &*it.name)
        .filter(|name| defined.contains_key(*name))
        .collect();
    if !duplicates.is_empty() {
        let message = format!(
            "{} defines {} already; nothing was written",
            file.display(),
            duplicates.join(", ")
        );
        return Err(CommandError::value(message)
            .with_hint("remove them there, or name the services to take over"));
    }
    let gap = match existing.as_str() {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let added = format!("{gap}{text}");
    manifest::parse(&format!("{existing}{added}"), target).map_err(invalid)?;
    // Appended in one write: the existing content, owner and mode stay.
    let file_result = fs::OpenOptions::new().create(true).append(true).open(&file);
    let write_result = file_result.and_then(|mut it| it.write_all(added.as_bytes()));
    write_result.map_err(|error| failed(&file, &error))?;
    let names: Vec<&str> = imported.services.iter().map(|it| &*it.name).collect();
    crate::print_note(&format!("{}: added {}", file.display(), names.join(", ")));
    Ok(())
}

fn failed(file: &Path, error: &std::io::Error) -> CommandError {
    CommandError::value(format!("{}: {error}", file.display()))
}
