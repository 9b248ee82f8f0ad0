//! From a template and the values of its parameters to a command.

use std::collections::BTreeMap;

use ostler_model::{ByteString, Command, TemplateRecord};
use thiserror::Error;

use crate::definition::CommandTemplate;
use crate::value::check_value;

/// The most problems that one message lists.
const PROBLEMS: usize = 20;

/// The command that a template describes with certain values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateCommand {
    /// The program and its arguments.
    pub command: Command,
    /// What is recorded: the template's id, and the values with the defaults among them.
    pub record: TemplateRecord,
}

/// Everything that is wrong with the given values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("template '{template}': {}", problems.join("; "))]
pub struct InvalidParameters {
    template: String,
    problems: Vec<String>,
}

impl CommandTemplate {
    /// The command with these values, and the defaults of parameters that have none.
    ///
    /// # Errors
    /// Every parameter that is unknown, missing or wrong.
    pub fn command(
        &self,
        given: &BTreeMap<String, ByteString>,
    ) -> Result<TemplateCommand, InvalidParameters> {
        let mut problems = self.unknown_names(given);
        let mut values = BTreeMap::new();
        for parameter in &self.parameters {
            let default = || parameter.default.as_deref().map(ByteString::from);
            let name = &parameter.name;
            match given.get(name).cloned().or_else(default) {
                None => problems.push(format!("parameter '{name}' is missing")),
                Some(value) => match check_value(parameter, &value) {
                    Ok(value) => drop(values.insert(name.clone(), value)),
                    Err(problem) => problems.push(format!("parameter '{name}' {problem}")),
                },
            }
        }
        if problems.is_empty() {
            let args: Option<Vec<ByteString>> =
                self.args.iter().map(|it| it.fill(&values)).collect();
            if let Some(args) = args {
                return Ok(self.with_arguments(args, values));
            }
            problems.push("a placeholder is left without a value".to_owned());
        }
        Err(self.invalid(problems))
    }

    fn with_arguments(
        &self,
        args: Vec<ByteString>,
        values: BTreeMap<String, ByteString>,
    ) -> TemplateCommand {
        TemplateCommand {
            command: Command::Argv {
                program: ByteString::from(self.command.as_str()),
                args,
            },
            record: TemplateRecord {
                id: self.id.clone(),
                parameters: values,
                confirm: self.requires_confirmation,
            },
        }
    }

    fn unknown_names(&self, given: &BTreeMap<String, ByteString>) -> Vec<String> {
        let names: Vec<&str> = self.parameters.iter().map(|it| it.name.as_str()).collect();
        let allowed = match names.as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        let unknown = given.keys().filter(|name| !names.contains(&name.as_str()));
        unknown
            .map(|name| {
                let name: String = name.chars().take(crate::argument::NAME_BYTES).collect();
                let name = ostler_model::visible(&name);
                format!("parameter '{name}' is unknown; allowed: {allowed}")
            })
            .collect()
    }

    fn invalid(&self, mut problems: Vec<String>) -> InvalidParameters {
        let more = problems.len().saturating_sub(PROBLEMS);
        if more > 0 {
            problems.truncate(PROBLEMS);
            problems.push(format!("and {more} more"));
        }
        InvalidParameters {
            template: self.id.clone(),
            problems,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::definition_file::parse_templates;

    const TEXT: &str = r#"
        [[template]]
        id = "all"
        command = "tool"
        args_template = ["{text}", "--n={count}", "{{{flag}}}", "{kind}", "{file}:{text}", "end"]
        [template.parameters.text]
        type = "string"
        [template.parameters.count]
        type = "integer"
        default = 3
        [template.parameters.flag]
        type = "boolean"
        default = false
        [template.parameters.kind]
        type = "choice"
        options = ["a", "b"]
        [template.parameters.file]
        type = "path"
        default = "."
    "#;

    fn template() -> CommandTemplate {
        parse_templates("test", TEXT).unwrap().remove(0)
    }

    fn given(pairs: &[[&str; 2]]) -> BTreeMap<String, ByteString> {
        let pairs = pairs.iter().copied();
        pairs
            .map(|[name, value]| (name.to_owned(), ByteString::from(value)))
            .collect()
    }

    #[test]
    fn defaults_are_applied_and_recorded() {
        let made = template()
            .command(&given(&[["text", "hi you"], ["kind", "b"]]))
            .unwrap();
        let words = ["tool", "hi you", "--n=3", "{false}", "b", ".:hi you", "end"];
        assert_eq!(made.command.argv(), words.map(ByteString::from));
        let record = &made.record;
        assert_eq!((record.id.as_str(), record.confirm), ("all", false));
        let recorded = given(&[
            ["text", "hi you"],
            ["count", "3"],
            ["flag", "false"],
            ["kind", "b"],
            ["file", "."],
        ]);
        assert_eq!(record.parameters, recorded);
    }

    #[test]
    fn every_bad_parameter_is_named_at_once() {
        let bad = given(&[
            ["count", "x"],
            ["kind", "c"],
            ["file", "-f"],
            ["other", "1"],
        ]);
        let error = template().command(&bad).unwrap_err().to_string();
        for part in [
            "template 'all'",
            "parameter 'text' is missing",
            "parameter 'count' is 'x'",
            "parameter 'kind' is 'c'; allowed: one of a, b",
            "parameter 'file' is '-f'",
            "parameter 'other' is unknown; allowed: text, count, flag, kind, file",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn many_unknown_names_are_counted_and_not_all_listed() {
        let many = (0..500)
            .map(|number| (format!("p{number}"), ByteString::default()))
            .collect();
        let error = template().command(&many).unwrap_err().to_string();
        assert!(error.contains("more") && error.len() < 4_000, "{error}");
    }

    proptest! {
        /// Whatever the values are, the arguments are as many as in the definition, and each holds
        /// its values whole.
        #[test]
        fn no_value_adds_or_splits_arguments(text in proptest::collection::vec(1u8.., 0..60), file in "[^-\0][^\0]{0,40}", count: i64) {
            let values = BTreeMap::from([
                ("text".to_owned(), ByteString::from(text.clone())),
                ("file".to_owned(), ByteString::from(file.as_str())),
                ("count".to_owned(), ByteString::from(count.to_string())),
                ("kind".to_owned(), ByteString::from("a")),
            ]);
            let argv = template().command(&values).unwrap().command.argv();
            let last = [file.as_bytes(), b":", &text].concat();
            let words = [b"tool".to_vec(), text, format!("--n={count}").into_bytes(), b"{false}".to_vec(), b"a".to_vec(), last, b"end".to_vec()];
            prop_assert_eq!(argv, words.map(ByteString::from));
        }

        /// Placeholders in values are text.
        #[test]
        fn values_are_not_substituted_again(name in "text|count|flag|kind|file") {
            let value = format!("{{{name}}}");
            let made = template().command(&given(&[["text", &value], ["kind", "a"]])).unwrap();
            prop_assert_eq!(&made.command.argv()[1], &ByteString::from(value));
        }
    }
}
