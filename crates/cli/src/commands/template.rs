//! `ostler template`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use ostler_interface::convert::{command_template_body, command_templates_body};
use ostler_interface::error::ApiError;
use ostler_interface::templates::find_template;
use ostler_model::{ByteString, ErrorCode, ProjectSet, duration};
use ostler_template::{
    ArgumentTemplate, CatalogEntry, FILE_BYTES, TemplateCatalog, TemplateParameter,
    TemplatePermission, parse_templates,
};

use super::run::{RunFlags, StartSource, run_command};
use super::start::resolve_directory;
use crate::argument_file;
use crate::attach::window_size;
use crate::context::CliContext;
use crate::error::{CommandError, CommandResult};
use crate::output::{StdoutWriter, StyledLine, TextTable, cells, print_json};

/// The width of a table that is not shown on a terminal, in columns.
const COLUMNS: usize = 80;
/// The fewest characters of a description that are shown.
const MIN_CHARS: usize = 8;

const RUN_ABOUT: &str = "\
Each parameter's value becomes one argument, or the part of one in which its placeholder is: no
shell sees it, and nothing is split. `template show ID` lists the parameters.";

/// The verbs of `template`.
#[derive(Debug, Subcommand)]
pub(crate) enum TemplateVerb {
    /// List the templates: those shipped, yours, and those of the project you are in
    List(TemplateListArgs),
    /// Show a template with its parameters
    Show(TemplateShowArgs),
    /// Run a template, as `run` does a command
    Run(Box<TemplateRunArgs>),
    /// Check a definition file
    Check(TemplateCheckArgs),
}

/// What `template list` takes.
#[derive(Debug, Args)]
pub(crate) struct TemplateListArgs {
    /// Only those of this category
    #[arg(long, value_name = "CATEGORY")]
    category: Option<String>,
    /// Include the templates of this directory's project; here unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Descriptions in full
    #[arg(long)]
    no_trunc: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What `template show` takes.
#[derive(Debug, Args)]
pub(crate) struct TemplateShowArgs {
    /// The template
    #[arg(value_name = "ID")]
    id: String,
    /// Include the templates of this directory's project; here unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What `template run` takes.
#[derive(Debug, Args)]
#[command(after_help = RUN_ABOUT)]
pub(crate) struct TemplateRunArgs {
    /// The template
    #[arg(value_name = "ID")]
    id: String,
    /// The value of a parameter; repeatable
    #[arg(short, long, value_name = "NAME=VALUE")]
    param: Vec<OsString>,
    #[command(flatten)]
    flags: RunFlags,
}

/// What `template check` takes.
#[derive(Debug, Args)]
pub(crate) struct TemplateCheckArgs {
    /// The definition file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Runs the verb.
///
/// # Errors
/// When there is no such template, its parameters are wrong, or it cannot be started.
pub(crate) fn run(context: &CliContext, verb: TemplateVerb) -> CommandResult {
    match verb {
        TemplateVerb::List(args) => list(context, args),
        TemplateVerb::Show(args) => show(context, args),
        TemplateVerb::Run(args) => run_template(context, *args),
        TemplateVerb::Check(args) => check(&args.file),
    }
}

fn catalog(context: &CliContext, cwd: Option<PathBuf>) -> Result<TemplateCatalog, CommandError> {
    let cwd = resolve_directory(cwd)?;
    Ok(context
        .config
        .template_files()
        .read(Some(cwd.as_path()), &ProjectSet::All))
}

fn list(context: &CliContext, args: TemplateListArgs) -> CommandResult {
    let catalog = catalog(context, args.cwd)?;
    let category = args.category.as_deref();
    if args.json {
        print_json(&command_templates_body(&catalog, category))?;
        return Ok(0);
    }
    let mut table = TextTable::new(&["ID", "CATEGORY", "SOURCE", "TIME", "DESCRIPTION"]);
    for entry in catalog.list(category) {
        let template = &entry.template;
        table.push_row(cells![
            &template.id,
            &template.category,
            source_text(entry),
            template
                .estimated_duration_s
                .map_or_else(String::new, duration_text),
            StyledLine::from(&template.description),
        ]);
    }
    if !args.no_trunc {
        let columns = window_size().map_or(COLUMNS, |size| size.cols.into());
        table.fit_width("DESCRIPTION", columns, MIN_CHARS);
    }
    let mut out = StdoutWriter::new();
    table.print(&mut out)?;
    out.flush()?;
    for problem in catalog.problems() {
        crate::print_note(&problem.to_string());
    }
    Ok(0)
}

/// For example `shipped`, or `user, replaces shipped`.
fn source_text(entry: &CatalogEntry) -> String {
    let tier = entry.tier;
    if entry.replaces_shipped {
        format!("{tier}, replaces shipped")
    } else {
        tier.to_string()
    }
}

fn duration_text(seconds: u64) -> String {
    duration::compact(Duration::from_secs(seconds))
}

fn show(context: &CliContext, args: TemplateShowArgs) -> CommandResult {
    let catalog = catalog(context, args.cwd)?;
    let entry = find_template(&catalog, &args.id).map_err(command_error)?;
    if args.json {
        print_json(&command_template_body(entry))?;
        return Ok(0);
    }
    let mut out = StdoutWriter::new();
    for (name, value) in fields(entry) {
        out.write_line(format!("{name:13}{value}"))?;
    }
    for parameter in &entry.template.parameters {
        out.write_line(parameter_line(parameter))?;
    }
    out.flush()?;
    Ok(0)
}

/// The lines for people: name and value.
fn fields(entry: &CatalogEntry) -> Vec<(&'static str, String)> {
    let template = &entry.template;
    let args = template.args.iter().map(ArgumentTemplate::as_str);
    let words: Vec<String> = [template.command.as_str()]
        .into_iter()
        .chain(args)
        .map(|word| ostler_model::shell_quote(&ByteString::from(word)).to_string())
        .collect();
    let permissions = template.required_permissions.iter().copied();
    let permissions: Vec<&str> = permissions.map(TemplatePermission::as_str).collect();
    let mut fields = vec![
        ("id", template.id.clone()),
        ("name", template.name.clone()),
        ("description", template.description.clone()),
        ("category", template.category.clone()),
        ("source", format!("{}: {}", source_text(entry), entry.file)),
        ("command", words.join(" ")),
    ];
    fields.extend((!permissions.is_empty()).then(|| ("permissions", permissions.join(", "))));
    let time = template.estimated_duration_s.map(duration_text);
    fields.extend(time.map(|time| ("time", format!("about {time}"))));
    if template.requires_confirmation {
        fields.push((
            "confirmation",
            "a person must agree to each start".to_owned(),
        ));
    }
    fields
}

/// For example `  style: choice of clean, modern; default clean. The style to refactor to`.
fn parameter_line(parameter: &TemplateParameter) -> String {
    let options = match parameter.options.as_slice() {
        [] => String::new(),
        options => format!(" of {}", options.join(", ")),
    };
    let presence = match &parameter.default {
        Some(default) => format!(
            "default {}",
            ostler_model::shell_quote(&default.as_str().into())
        ),
        None => "required".to_owned(),
    };
    format!(
        "  {}: {}{options}; {presence}. {}",
        parameter.name,
        parameter.kind.as_str(),
        parameter.description
    )
}

fn run_template(context: &CliContext, args: TemplateRunArgs) -> CommandResult {
    let mut flags = args.flags;
    let catalog = catalog(context, flags.common.cwd.clone())?;
    let template = &find_template(&catalog, &args.id)
        .map_err(command_error)?
        .template;
    let values = parse_values(args.param)?;
    let made = template.command(&values).map_err(|error| {
        let hint = format!(
            "`ostler template show {}` lists its parameters",
            template.id
        );
        CommandError::new(ErrorCode::Template, error.to_string()).with_hint(hint)
    })?;
    if flags.common.description.is_empty() {
        flags.common.description.clone_from(&template.name);
    }
    let source = StartSource {
        template: Some(made.record),
        ..StartSource::default()
    };
    run_command(context, flags, made.command, source)
}

/// The values of --param by name.
fn parse_values(pairs: Vec<OsString>) -> Result<BTreeMap<String, ByteString>, CommandError> {
    let mut values = BTreeMap::new();
    for pair in pairs {
        let bytes = ByteString::from(pair).into_bytes();
        let equals = bytes.iter().position(|&byte| byte == b'=');
        let (name, value) = equals.map_or((&bytes[..], None), |at| {
            (&bytes[..at], Some(ByteString::from(&bytes[at + 1..])))
        });
        let name = String::from_utf8_lossy(name).into_owned();
        let Some(value) = value else {
            let message = format!("--param {name}: there is no value");
            return Err(CommandError::value(message).with_hint("write --param NAME=VALUE"));
        };
        if values.insert(name.clone(), value).is_some() {
            return Err(CommandError::value(format!(
                "--param {name} is given twice"
            )));
        }
    }
    Ok(values)
}

fn check(path: &Path) -> CommandResult {
    let file = path.display().to_string();
    let bad = |message: String| CommandError::new(ErrorCode::Environment, message);
    let text = read_limited(path).map_err(|error| bad(format!("{file}: {error}")))?;
    let templates = parse_templates(&file, &text).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        bad(problems.join("; "))
    })?;
    let mut out = StdoutWriter::new();
    let ids: Vec<&str> = templates.iter().map(|it| it.id.as_str()).collect();
    out.write_line(format!("{file}: {}", ids.join(", ")))?;
    out.flush()?;
    Ok(0)
}

/// The text of a file; of one that is too large, enough that the parser refuses it.
fn read_limited(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let limit = u64::try_from(FILE_BYTES + 1).unwrap_or(u64::MAX);
    argument_file::open(path)?
        .take(limit)
        .read_to_string(&mut text)?;
    Ok(text)
}

fn command_error(error: ApiError) -> CommandError {
    let hint = error.hint.clone();
    let command_error = CommandError::new(error.code, error.message());
    match hint {
        Some(hint) => command_error.with_hint(hint),
        None => command_error,
    }
}
