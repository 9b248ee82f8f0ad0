//! Definition files: TOML, with any number of templates.

use std::collections::BTreeMap;
use std::fmt;

use ostler_model::{ByteString, TemplateRecord, line_number, visible};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::argument::{ArgumentTemplate, check_name};
use crate::definition::{CommandTemplate, ParameterType, TemplateParameter, TemplatePermission};
use crate::value::check_value;

/// The largest definition file, in bytes.
pub const FILE_BYTES: usize = 64 * 1024;
/// The most templates of a file.
const TEMPLATES: usize = 64;
/// The longest id or category, in bytes.
const WORD_BYTES: usize = TemplateRecord::ID_BYTES;
/// The longest name, in bytes.
const NAME_BYTES: usize = 200;
/// The longest description, in bytes.
const DESCRIPTION_BYTES: usize = 2_000;
/// The most arguments of a template.
const ARGUMENTS: usize = 256;
/// The most parameters of a template.
const PARAMETERS: usize = TemplateRecord::PARAMETERS;
/// The most options of a choice.
const OPTIONS: usize = 64;
/// The longest option, in bytes.
const OPTION_BYTES: usize = 200;
/// The longest estimated duration, in seconds: thirty days.
const DURATION_MAX_S: u64 = 30 * 24 * 60 * 60;

/// Why a file, or one template of it, is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateProblem {
    /// The file.
    pub file: String,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for TemplateProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            message,
        } = self;
        match line {
            Some(line) => write!(f, "{file}:{line}: {message}"),
            None => write!(f, "{file}: {message}"),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileFields {
    #[serde(default)]
    template: Vec<Spanned<TemplateFields>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateFields {
    id: String,
    name: Option<String>,
    #[serde(default)]
    description: String,
    category: Option<String>,
    command: String,
    #[serde(default)]
    args_template: Vec<Spanned<String>>,
    #[serde(default)]
    required_permissions: Vec<Spanned<String>>,
    estimated_duration: Option<u64>,
    #[serde(default)]
    requires_confirmation: bool,
    #[serde(default)]
    parameters: BTreeMap<String, Spanned<ParameterFields>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ParameterFields {
    #[serde(rename = "type")]
    kind: ParameterType,
    required: Option<bool>,
    default: Option<Value>,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    description: String,
}

/// A problem and its offset in the text.
struct Located {
    at: usize,
    message: String,
}

/// The category of a template that names none.
const CATEGORY: &str = "general";

/// Parses a definition file; `file` is its name in problems.
///
/// # Errors
/// The first problem of each template, or what is wrong with the whole file.
pub fn parse_templates(
    file: &str,
    text: &str,
) -> Result<Vec<CommandTemplate>, Vec<TemplateProblem>> {
    let problem = |line, message| TemplateProblem {
        file: file.to_owned(),
        line,
        message,
    };
    if text.len() > FILE_BYTES {
        let message = format!("is {} bytes long; allowed: {FILE_BYTES}", text.len());
        return Err(vec![problem(None, message)]);
    }
    let fields: FileFields = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| line_number(text, span.start));
        vec![problem(line, error.message().to_owned())]
    })?;
    if fields.template.is_empty() {
        let message = "defines no template; allowed: tables [[template]]".to_owned();
        return Err(vec![problem(None, message)]);
    }
    if fields.template.len() > TEMPLATES {
        let message = format!(
            "has {} templates; allowed: {TEMPLATES}",
            fields.template.len()
        );
        return Err(vec![problem(None, message)]);
    }
    let (mut templates, mut problems) = (Vec::<CommandTemplate>::new(), Vec::new());
    for fields in fields.template {
        let at = fields.span().start;
        let fields = fields.into_inner();
        let id = visible(&fields.id).into_owned();
        let is_defined = templates.iter().any(|it| it.id == fields.id);
        let parsed = if is_defined {
            Err(located(at, "is defined twice in this file"))
        } else {
            template(at, fields)
        };
        match parsed {
            Ok(template) => templates.push(template),
            Err(Located { at, message }) => {
                let message = format!("template '{id}' {message}");
                problems.push(problem(Some(line_number(text, at)), message));
            }
        }
    }
    if problems.is_empty() {
        Ok(templates)
    } else {
        Err(problems)
    }
}

fn located(at: usize, message: impl Into<String>) -> Located {
    let message = message.into();
    Located { at, message }
}

fn template(at: usize, fields: TemplateFields) -> Result<CommandTemplate, Located> {
    let here = |message: String| located(at, message);
    let name = fields.name.unwrap_or_else(|| fields.id.clone());
    let category = fields.category.unwrap_or_else(|| CATEGORY.to_owned());
    check_word("id", &fields.id).map_err(here)?;
    check_word("category", &category).map_err(here)?;
    check_length("name", &name, NAME_BYTES).map_err(here)?;
    check_length("description", &fields.description, DESCRIPTION_BYTES).map_err(here)?;
    check_program(&fields.command).map_err(here)?;
    check_count("args_template", fields.args_template.len(), ARGUMENTS).map_err(here)?;
    check_count("parameters", fields.parameters.len(), PARAMETERS).map_err(here)?;
    if fields
        .estimated_duration
        .is_some_and(|seconds| seconds > DURATION_MAX_S)
    {
        let message = format!("has an estimated_duration above {DURATION_MAX_S} seconds");
        return Err(here(message));
    }
    let args = fields.args_template.iter().enumerate();
    let args: Vec<ArgumentTemplate> = args
        .map(|(index, text)| argument(index, text, &fields.parameters))
        .collect::<Result<_, Located>>()?;
    let parameters = parameters_in_order(&args, fields.parameters)?;
    Ok(CommandTemplate {
        id: fields.id,
        name,
        description: fields.description,
        category,
        command: fields.command,
        args,
        required_permissions: permissions(&fields.required_permissions)?,
        estimated_duration_s: fields.estimated_duration,
        requires_confirmation: fields.requires_confirmation,
        parameters,
    })
}

fn check_word(field: &str, text: &str) -> Result<(), String> {
    let is_allowed =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let begins_well = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if begins_well && text.chars().all(is_allowed) && text.len() <= WORD_BYTES {
        return Ok(());
    }
    Err(format!(
        "has a wrong {field}; allowed: lower-case letters, digits, '_' and '-', beginning with a \
         letter or digit, at most {WORD_BYTES}"
    ))
}

fn check_length(field: &str, text: &str, limit: usize) -> Result<(), String> {
    if text.len() > limit {
        return Err(format!(
            "has a {field} of {} bytes; allowed: {limit}",
            text.len()
        ));
    }
    Ok(())
}

fn check_count(field: &str, count: usize, limit: usize) -> Result<(), String> {
    if count > limit {
        return Err(format!("has {count} {field}; allowed: {limit}"));
    }
    Ok(())
}

fn check_program(command: &str) -> Result<(), String> {
    if command.is_empty() {
        return Err("has an empty command".to_owned());
    }
    if command.contains(['\0', '{', '}']) {
        return Err(
            "has a NUL byte or a brace in command; placeholders are for args_template".to_owned(),
        );
    }
    Ok(())
}

fn argument(
    index: usize,
    text: &Spanned<String>,
    parameters: &BTreeMap<String, Spanned<ParameterFields>>,
) -> Result<ArgumentTemplate, Located> {
    let here = |message: String| {
        located(
            text.span().start,
            format!("args_template[{index}] {message}"),
        )
    };
    let argument = ArgumentTemplate::parse(text.get_ref()).map_err(here)?;
    let undefined = argument
        .parameters()
        .find(|name| !parameters.contains_key(*name));
    match undefined {
        Some(name) => Err(here(format!(
            "has a placeholder {{{name}}} without a parameter"
        ))),
        None => Ok(argument),
    }
}

fn permissions(names: &[Spanned<String>]) -> Result<Vec<TemplatePermission>, Located> {
    let parse = |name: &Spanned<String>| {
        let text = name.get_ref();
        text.parse().map_err(|error| {
            let text = visible(text);
            located(
                name.span().start,
                format!("required_permissions: '{text}' {error}"),
            )
        })
    };
    names.iter().map(parse).collect()
}

/// The parameters in the order of their first placeholders.
fn parameters_in_order(
    args: &[ArgumentTemplate],
    mut fields: BTreeMap<String, Spanned<ParameterFields>>,
) -> Result<Vec<TemplateParameter>, Located> {
    let mut parameters = Vec::new();
    for name in args.iter().flat_map(ArgumentTemplate::parameters) {
        if let Some(fields) = fields.remove(name) {
            let at = fields.span().start;
            let parsed = parameter(name, fields.into_inner());
            let message = |problem| format!("parameter '{name}' {problem}");
            parameters.push(parsed.map_err(|problem| located(at, message(problem)))?);
        }
    }
    match fields.first_key_value() {
        Some((name, fields)) => {
            let name = visible(name);
            let message = format!("parameter '{name}' is in no placeholder of args_template");
            Err(located(fields.span().start, message))
        }
        None => Ok(parameters),
    }
}

fn parameter(name: &str, fields: ParameterFields) -> Result<TemplateParameter, String> {
    check_name(name)?;
    check_length("description", &fields.description, DESCRIPTION_BYTES)?;
    check_options(fields.kind, &fields.options)?;
    let default = fields.default.map(default_text).transpose()?;
    match (fields.required, &default) {
        (Some(true), Some(_)) => {
            return Err("is required and has a default; allowed: one of both".to_owned());
        }
        (Some(false), None) => {
            return Err(
                "is not required and has no default, so that its placeholder could be left open"
                    .to_owned(),
            );
        }
        (Some(true) | None, None) | (Some(false) | None, Some(_)) => {}
    }
    let mut parameter = TemplateParameter {
        name: name.to_owned(),
        kind: fields.kind,
        default: None,
        options: fields.options,
        description: fields.description,
    };
    if let Some(text) = default {
        let checked = check_value(&parameter, &ByteString::from(text));
        let checked = checked.map_err(|problem| format!("has a default that {problem}"))?;
        parameter.default = Some(checked.to_string());
    }
    Ok(parameter)
}

fn check_options(kind: ParameterType, options: &[String]) -> Result<(), String> {
    if kind != ParameterType::Choice {
        return match options {
            [] => Ok(()),
            _ => Err(format!("has options and is of type {}", kind.as_str())),
        };
    }
    if options.is_empty() {
        return Err("is a choice without options".to_owned());
    }
    check_count("options", options.len(), OPTIONS)?;
    let is_wrong = |it: &&String| it.contains('\0') || it.len() > OPTION_BYTES;
    if let Some(option) = options.iter().find(is_wrong) {
        let (shown, limit) = (visible(option), OPTION_BYTES);
        return Err(format!(
            "has an option '{shown}' with a NUL byte, or longer than {limit} bytes"
        ));
    }
    Ok(())
}

fn default_text(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        Value::Float(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            Err("has a default that is no text, whole number, true or false".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "[[template]]\nid = \"a\"\ncommand = \"c\"\n";

    fn problem(text: &str) -> String {
        let problems = parse_templates("t.toml", text).unwrap_err();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        problems.join("\n")
    }

    #[test]
    fn the_least_that_a_template_needs_is_an_id_and_a_command() {
        let template = parse_templates("t.toml", START).unwrap().remove(0);
        assert_eq!(
            (template.name.as_str(), template.category.as_str()),
            ("a", "general")
        );
        assert!(!template.requires_confirmation && template.parameters.is_empty());
    }

    #[test]
    fn problems_name_file_line_and_field() {
        let with = |rest: &str| format!("{START}{rest}");
        let used = |fields: &str| {
            with(&format!(
                "args_template = [\"{{p}}\"]\n[template.parameters.p]\n{fields}"
            ))
        };
        for (text, place, reason) in [
            ("a = ".to_owned(), "t.toml:1: ", ""),
            (String::new(), "t.toml: ", "defines no template"),
            (with("argv = []"), "t.toml:4: ", "unknown field `argv`"),
            (
                "[[template]]\ncommand = \"c\"".to_owned(),
                "t.toml:1: ",
                "missing field `id`",
            ),
            (START.replace("\"a\"", "\"A\""), "t.toml:1: ", "wrong id"),
            (
                START.replace("\"c\"", "\"\""),
                "t.toml:1: ",
                "empty command",
            ),
            (
                START.replace("\"c\"", "\"{p}\""),
                "t.toml:1: ",
                "placeholders are for",
            ),
            (
                with("args_template = [\n\"x\",\n\"{p}\"]"),
                "t.toml:6: ",
                "args_template[1] has a placeholder {p}",
            ),
            (
                with("args_template = [\"{\"]"),
                "t.toml:4: ",
                "args_template[0] has a '{' that is not closed",
            ),
            (
                with("required_permissions = [\"root\"]"),
                "t.toml:4: ",
                "allowed: project:read",
            ),
            (with("estimated_duration = -1"), "t.toml:4: ", ""),
            (
                with("estimated_duration = 99999999"),
                "t.toml:1: ",
                "estimated_duration",
            ),
            (
                with("[template.parameters.p]\ntype = \"string\""),
                "t.toml:4: ",
                "in no placeholder",
            ),
            (
                used("type = \"text\""),
                "t.toml:6: ",
                "unknown variant `text`",
            ),
            (
                used("type = \"choice\""),
                "t.toml:5: ",
                "choice without options",
            ),
            (
                used("type = \"string\"\noptions = [\"x\"]"),
                "t.toml:5: ",
                "is of type string",
            ),
            (
                used("type = \"string\"\nrequired = false"),
                "t.toml:5: ",
                "left open",
            ),
            (
                used("type = \"string\"\nrequired = true\ndefault = \"x\""),
                "t.toml:5: ",
                "one of both",
            ),
            (
                used("type = \"integer\"\ndefault = \"x\""),
                "t.toml:5: ",
                "default that is 'x'",
            ),
            (
                used("type = \"integer\"\ndefault = 1.5"),
                "t.toml:5: ",
                "whole number",
            ),
            (format!("{START}{START}"), "t.toml:4: ", "defined twice"),
        ] {
            let message = problem(&text);
            assert!(
                message.starts_with(place) && message.contains(reason),
                "{text}\n{message}"
            );
        }
    }

    #[test]
    fn each_template_reports_a_problem_of_its_own() {
        let message = problem(
            "[[template]]\nid = \"A\"\ncommand = \"c\"\n[[template]]\nid = \"b\"\ncommand = \"\"\n",
        );
        assert_eq!(message.lines().count(), 2, "{message}");
    }

    #[test]
    fn limits_are_checked() {
        let many = "\"x\",".repeat(ARGUMENTS + 1);
        assert!(problem(&format!("{START}args_template = [{many}]")).contains("257 args_template"));
        assert!(problem(&" ".repeat(FILE_BYTES + 1)).contains("65537 bytes"));
        assert!(problem(&START.repeat(TEMPLATES + 1)).contains("65 templates"));
    }
}
