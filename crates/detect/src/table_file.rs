//! The file format of a detection table, and its errors.

use std::collections::BTreeMap;

use ostler_model::{ServiceKind, line_number, suggestion};
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

/// The structure of a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableFile {
    #[serde(default)]
    pub(super) entry: Vec<EntryDefinition>,
    /// Programs that run the command in their arguments.
    #[serde(default)]
    pub(super) wrapper: Vec<WrapperDefinition>,
    /// Definitions that the entries of a language share.
    #[serde(default)]
    pub(super) language: BTreeMap<String, LanguageDefinition>,
}

/// One framework.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntryDefinition {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) language: String,
    #[serde(default)]
    pub(super) kind: ServiceKind,
    /// Patterns of command lines, see `pattern`.
    pub(super) argv: Vec<String>,
    /// Options that take a value, besides those that give a port and the usual ones.
    #[serde(default)]
    pub(super) takes: Vec<String>,
    /// Texts of a source file that starts a server; of a text with ` & `, all parts have to occur.
    /// The term `<` needs one of them; an entry of kind `unknown` without that term is a server
    /// if its file contains one.
    #[serde(default)]
    pub(super) contains: Vec<String>,
    #[serde(default)]
    pub(super) ready: Vec<String>,
    #[serde(default)]
    pub(super) fail: Vec<String>,
    #[serde(default)]
    pub(super) url: Vec<String>,
    #[serde(default)]
    pub(super) default_port: Option<u16>,
    #[serde(default)]
    pub(super) timeout_s: Option<u64>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) terminal: bool,
    /// Where its port is requested: options (`--port`), `@` an operand, `@1024` one not below
    /// that, `$PORT` a variable, `~port=` the digits after that in any word.
    #[serde(default)]
    pub(super) port: Vec<String>,
    /// Arguments that set its port; empty where `PORT` does.
    #[serde(default)]
    pub(super) port_arguments: Option<Vec<String>>,
    /// It reports ready before its port opens.
    #[serde(default)]
    pub(super) log_before_listen: bool,
    /// Its port opens before it can respond.
    #[serde(default)]
    pub(super) listens_before_ready: bool,
    /// Its first response takes seconds.
    #[serde(default)]
    pub(super) http_slow: bool,
    /// It compiles what it runs first.
    #[serde(default)]
    pub(super) compiles: bool,
    /// The entry covers several programs: the service is named after its program, and these have
    /// another default port.
    #[serde(default)]
    pub(super) programs: Option<BTreeMap<String, u16>>,
    /// Its expressions were verified with the program's real output.
    #[serde(default)]
    pub(super) verified: bool,
    #[serde(default)]
    pub(super) notes: String,
}

/// A program that runs the command in its arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrapperDefinition {
    /// Its name and subcommands; options may stand between them.
    pub(super) words: Vec<String>,
    /// Its options with a value.
    #[serde(default)]
    pub(super) takes: Vec<String>,
    /// Options whose value is a directory to change to.
    #[serde(default)]
    pub(super) chdir: Vec<String>,
    /// How many operands precede the command.
    #[serde(default)]
    pub(super) operands: usize,
    /// Whether `NAME=value` may precede the command.
    #[serde(default)]
    pub(super) assigns: bool,
    /// Whether the command has to follow `--`.
    #[serde(default)]
    pub(super) dashes: bool,
    /// Whether the command's first word is the name of a package: `vite@5`.
    #[serde(default)]
    pub(super) package: bool,
    /// Whether options at the end are its own unless they follow `--`.
    #[serde(default)]
    pub(super) keeps_options: bool,
}

/// Definitions that the entries of a language share.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LanguageDefinition {
    /// Variables, unless the entry or the request sets them.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Texts of a source file that starts a server, for all entries that read one.
    #[serde(default)]
    pub(super) contains: Vec<String>,
}

/// Keys of a file, in the order of the fields.
pub(super) const FILE_KEYS: [&str; 3] = ["entry", "wrapper", "language"];
/// Keys of an entry.
pub(super) const ENTRY_KEYS: [&str; 23] = [
    "id",
    "title",
    "language",
    "kind",
    "argv",
    "takes",
    "contains",
    "ready",
    "fail",
    "url",
    "default_port",
    "timeout_s",
    "env",
    "terminal",
    "port",
    "port_arguments",
    "log_before_listen",
    "listens_before_ready",
    "http_slow",
    "compiles",
    "programs",
    "verified",
    "notes",
];
/// Keys of a wrapper.
pub(super) const WRAPPER_KEYS: [&str; 8] = [
    "words",
    "takes",
    "chdir",
    "operands",
    "assigns",
    "dashes",
    "package",
    "keeps_options",
];
/// Keys of a language.
pub(super) const LANGUAGE_KEYS: [&str; 2] = ["env", "contains"];

/// Parses a file; the error has its line, and for an unknown key the nearest known one.
pub(super) fn parse_checked(text: &str) -> Result<TableFile, String> {
    let parsed = DeTable::parse(text).map_err(|error| syntax_error(text, &error))?;
    match unknown_key(parsed.get_ref()) {
        Some((span, what)) => Err(with_line(text, Some(span), &what)),
        None => parse(text),
    }
}

/// Parses a file; the error has its line.
pub(super) fn parse(text: &str) -> Result<TableFile, String> {
    toml::from_str(text).map_err(|error| syntax_error(text, &error))
}

fn syntax_error(text: &str, error: &toml::de::Error) -> String {
    with_line(text, error.span(), error.message())
}

fn with_line(text: &str, span: Option<std::ops::Range<usize>>, what: &str) -> String {
    let line = line_number(text, span.map_or(0, |span| span.start));
    format!("line {line}: {what}")
}

type UnknownKey = (std::ops::Range<usize>, String);

fn unknown_key(file: &DeTable<'_>) -> Option<UnknownKey> {
    if let Some(found) = unknown_in(file, &FILE_KEYS) {
        return Some(found);
    }
    let value = |key: &str| file.get(key).map(|value| value.get_ref());
    let array = |key: &str| {
        let items = value(key).and_then(DeValue::as_array);
        let items = items.into_iter().flat_map(|items| items.iter());
        items.map(|item| item.get_ref()).collect()
    };
    let languages = value("language").and_then(DeValue::as_table);
    let languages = languages.into_iter().flat_map(|all| all.values());
    let languages = languages.map(|value| value.get_ref()).collect();
    let groups: [(Vec<&DeValue<'_>>, &[&str]); 3] = [
        (array("entry"), &ENTRY_KEYS),
        (array("wrapper"), &WRAPPER_KEYS),
        (languages, &LANGUAGE_KEYS),
    ];
    groups.into_iter().find_map(|(items, known)| {
        let mut tables = items.into_iter().filter_map(DeValue::as_table);
        tables.find_map(|table| unknown_in(table, known))
    })
}

fn unknown_in(table: &DeTable<'_>, known: &[&str]) -> Option<UnknownKey> {
    let key = table
        .keys()
        .filter(|key| !known.contains(&key.get_ref().as_ref()))
        .min_by_key(|key| key.span().start)?;
    let name = key.get_ref();
    let nearest = suggestion::nearest(name, known);
    let hint = nearest.map(|it| format!("; did you mean '{it}'?"));
    let what = format!("unknown key '{name}'{}", hint.unwrap_or_default());
    Some((key.span(), what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<T: for<'a> Deserialize<'a> + std::fmt::Debug>(text: &str) -> Vec<String> {
        let error = toml::from_str::<T>(text).unwrap_err();
        let message = error.message().to_owned();
        let listed = message
            .split_once("expected ")
            .expect("serde lists them")
            .1
            .to_owned();
        listed
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn the_lists_of_keys_are_those_of_the_shapes() {
        assert_eq!(fields::<TableFile>("zz = 1"), FILE_KEYS);
        assert_eq!(fields::<EntryDefinition>("zz = 1"), ENTRY_KEYS);
        assert_eq!(fields::<WrapperDefinition>("zz = 1"), WRAPPER_KEYS);
        assert_eq!(fields::<LanguageDefinition>("zz = 1"), LANGUAGE_KEYS);
    }

    #[test]
    fn a_wrong_key_is_named_with_its_line_and_the_nearest() {
        let text = "[[entry]]\nid = \"x\"\ntitle = \"X\"\nredy = []\n";
        assert_eq!(
            parse_checked(text).unwrap_err(),
            "line 4: unknown key 'redy'; did you mean 'ready'?"
        );
        assert_eq!(
            parse_checked("\n[[entries]]\nid = \"x\"\n").unwrap_err(),
            "line 2: unknown key 'entries'; did you mean 'entry'?"
        );
    }

    #[test]
    fn syntax_and_missing_keys_have_their_line() {
        assert!(
            parse_checked("a = \n").unwrap_err().starts_with("line 1: "),
            "syntax"
        );
        let missing = parse_checked("\n\n[[entry]]\nid = \"x\"\n").unwrap_err();
        assert!(missing.starts_with("line 3: missing field"), "{missing}");
        let kind = parse_checked("[[entry]]\nid = \"x\"\nkind = \"sever\"\n").unwrap_err();
        assert!(kind.starts_with("line 3: "), "{kind}");
    }
}
