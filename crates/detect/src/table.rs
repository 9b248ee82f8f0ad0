//! [`DetectionTable`]: the table's entries, compiled.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use ostler_model::ServiceKind;

use super::arguments::base_name;
use super::pattern::CommandPattern;
use super::table_file::{
    EntryDefinition, LanguageDefinition, TableFile, WrapperDefinition, parse, parse_checked,
};

/// The built-in table: its files, in the order they are tried.
const SHIPPED: [(&str, &str); 7] = [
    ("table/languages.toml", include_str!("table/languages.toml")),
    ("table/bundlers.toml", include_str!("table/bundlers.toml")),
    (
        "table/javascript.toml",
        include_str!("table/javascript.toml"),
    ),
    ("table/python.toml", include_str!("table/python.toml")),
    ("table/compiled.toml", include_str!("table/compiled.toml")),
    ("table/dynamic.toml", include_str!("table/dynamic.toml")),
    ("table/servers.toml", include_str!("table/servers.toml")),
];

/// Entries of frameworks, in the order they are tried.
#[derive(Debug, Clone)]
pub struct DetectionTable {
    inner: Arc<TableInner>,
}

#[derive(Debug, Clone, Default)]
struct TableInner {
    entries: Vec<Arc<TableEntry>>,
    wrappers: Vec<Arc<WrapperDefinition>>,
    languages: BTreeMap<String, LanguageDefinition>,
    /// Entries by program name: most commands match none.
    by_program: HashMap<String, Vec<usize>>,
    by_wrapper: HashMap<String, Vec<usize>>,
}

#[derive(Debug)]
pub(super) struct TableEntry {
    pub(super) text: EntryDefinition,
    pub(super) patterns: Vec<CommandPattern>,
}

impl TableEntry {
    /// Whether an option has a value.
    pub(super) fn takes_value(&self, option: &str) -> bool {
        let matches = |it: &String| it == option;
        self.text.takes.iter().any(matches) || self.text.port.iter().any(matches)
    }

    /// The default port of a program.
    pub(super) fn default_port(&self, program: &str) -> Option<u16> {
        let own = self.text.programs.as_ref();
        let own = own.and_then(|it| it.get(base_name(program)).copied());
        own.or(self.text.default_port)
    }

    /// Whether the entry's kind depends on the content of its file.
    pub(super) fn kind_depends_on_file(&self) -> bool {
        self.text.kind == ServiceKind::Unknown
            && !self.text.contains.is_empty()
            && !self.patterns.iter().any(CommandPattern::reads_file)
    }
}

/// The fields of an entry that a listing shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryInfo<'a> {
    /// Its id: `vite`.
    pub id: &'a str,
    /// A title for people.
    pub title: &'a str,
    /// The language, ecosystem or field it belongs to: `javascript`, `database`.
    pub language: &'a str,
    /// The kind of service.
    pub kind: ServiceKind,
    /// Its default port.
    pub default_port: Option<u16>,
    /// Whether it reports ready before its port opens.
    pub log_before_listen: bool,
    /// Whether its first response takes seconds.
    pub http_slow: bool,
    /// Remarks for people.
    pub notes: &'a str,
    /// Whether its expressions were verified with the program's real output.
    pub verified: bool,
}

/// An invalid detection table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Not valid TOML, or of another structure.
    #[error("{file}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// The cause, with its line.
        problem: String,
    },
    /// An expression of an entry cannot be compiled.
    #[error("{file}: entry '{id}', {field}: {problem}")]
    Expression {
        /// The file.
        file: String,
        /// The entry's id.
        id: String,
        /// The entry's field.
        field: String,
        /// The cause.
        problem: String,
    },
}

impl DetectionTable {
    /// The built-in table.
    ///
    /// # Panics
    /// Never: a test reads the shipped files.
    #[must_use]
    pub fn shipped() -> Self {
        static SHIPPED_TABLE: LazyLock<DetectionTable> =
            LazyLock::new(|| DetectionTable::read_shipped().expect("the shipped table was tested"));
        SHIPPED_TABLE.clone()
    }

    fn read_shipped() -> Result<Self, TableError> {
        let mut inner = TableInner::default();
        for (file, text) in SHIPPED {
            // Their expressions are compiled by tests and, one by one, on use.
            inner.add(
                compile(file, text, ExpressionCheck::Trusted)?,
                InsertPosition::Last,
            );
        }
        inner.index();
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Adds the entries of a user's file before all others; an entry with a known id replaces it.
    ///
    /// # Errors
    /// [`TableError`], with the file and the position.
    pub fn with_file(&self, file: &str, text: &str) -> Result<Self, TableError> {
        let mut inner = TableInner::clone(&self.inner);
        inner.add(
            compile(file, text, ExpressionCheck::Compiled)?,
            InsertPosition::First,
        );
        inner.index();
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// All entries, in the order they are tried.
    pub fn entries(&self) -> impl Iterator<Item = EntryInfo<'_>> {
        self.inner.entries.iter().map(|entry| EntryInfo {
            id: &entry.text.id,
            title: &entry.text.title,
            language: &entry.text.language,
            kind: entry.text.kind,
            default_port: entry.text.default_port,
            log_before_listen: entry.text.log_before_listen,
            http_slow: entry.text.http_slow,
            notes: &entry.text.notes,
            verified: entry.text.verified,
        })
    }

    /// The entries for a program, in the order they are tried.
    pub(super) fn entries_for(&self, program: &str) -> impl Iterator<Item = &TableEntry> {
        let found = self.inner.by_program.get(base_name(program));
        let entries = found.into_iter().flatten();
        entries.filter_map(|at| self.inner.entries.get(*at).map(Arc::as_ref))
    }

    /// The wrappers that users' files add, by program.
    pub(super) fn wrappers(&self, program: &str) -> impl Iterator<Item = &WrapperDefinition> {
        let found = self.inner.by_wrapper.get(base_name(program));
        let wrappers = found.into_iter().flatten();
        wrappers.filter_map(|at| self.inner.wrappers.get(*at).map(Arc::as_ref))
    }

    /// The definitions that the entries of a language share.
    pub(super) fn language(&self, name: &str) -> Option<&LanguageDefinition> {
        self.inner.languages.get(name)
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &TableEntry> {
        self.inner.entries.iter().map(Arc::as_ref)
    }
}

#[derive(Clone, Copy)]
enum InsertPosition {
    First,
    Last,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpressionCheck {
    Trusted,
    Compiled,
}

struct CompiledTable {
    entries: Vec<Arc<TableEntry>>,
    wrappers: Vec<Arc<WrapperDefinition>>,
    languages: BTreeMap<String, LanguageDefinition>,
}

impl TableInner {
    fn add(&mut self, file: CompiledTable, position: InsertPosition) {
        let is_replaced = |id: &str| file.entries.iter().any(|it| it.text.id == id);
        self.entries.retain(|entry| !is_replaced(&entry.text.id));
        let at = match position {
            InsertPosition::First => 0,
            InsertPosition::Last => self.entries.len(),
        };
        self.entries.splice(at..at, file.entries);
        self.wrappers.splice(0..0, file.wrappers);
        self.languages.extend(file.languages);
    }

    fn index(&mut self) {
        self.by_program.clear();
        for (at, entry) in self.entries.iter().enumerate() {
            for program in entry.patterns.iter().flat_map(CommandPattern::programs) {
                let list = self.by_program.entry(program.to_owned()).or_default();
                if list.last() != Some(&at) {
                    list.push(at);
                }
            }
        }
        self.by_wrapper.clear();
        for (at, wrapper) in self.wrappers.iter().enumerate() {
            let name = wrapper.words.first().cloned().unwrap_or_default();
            self.by_wrapper.entry(name).or_default().push(at);
        }
    }
}

fn compile(
    file: &str,
    text: &str,
    expressions: ExpressionCheck,
) -> Result<CompiledTable, TableError> {
    let syntax = |problem| TableError::Syntax {
        file: file.to_owned(),
        problem,
    };
    let TableFile {
        entry,
        wrapper,
        language,
    } = match expressions {
        ExpressionCheck::Trusted => parse(text),
        ExpressionCheck::Compiled => parse_checked(text),
    }
    .map_err(syntax)?;
    let mut entries: Vec<Arc<TableEntry>> = Vec::with_capacity(entry.len());
    for text in entry {
        if entries.iter().any(|it| it.text.id == text.id) {
            return Err(syntax(format!("two entries are called '{}'", text.id)));
        }
        if expressions == ExpressionCheck::Compiled {
            check_expressions(file, &text)?;
        }
        entries.push(Arc::new(compile_entry(file, text)?));
    }
    if wrapper.iter().any(|it| it.words.is_empty()) {
        return Err(syntax("a wrapper has no words".to_owned()));
    }
    Ok(CompiledTable {
        entries,
        wrappers: wrapper.into_iter().map(Arc::new).collect(),
        languages: language,
    })
}

fn compile_entry(file: &str, text: EntryDefinition) -> Result<TableEntry, TableError> {
    let invalid = |field: &str, problem| TableError::Expression {
        file: file.to_owned(),
        id: text.id.clone(),
        field: field.to_owned(),
        problem,
    };
    if text.id.is_empty() {
        return Err(invalid("id", "it is empty".to_owned()));
    }
    let patterns: Result<Vec<_>, _> = text
        .argv
        .iter()
        .map(|it| CommandPattern::parse(it))
        .collect();
    let patterns = patterns.map_err(|problem| invalid("argv", problem))?;
    if patterns.is_empty() {
        return Err(invalid("argv", "there is no pattern".to_owned()));
    }
    if text.contains.is_empty() && patterns.iter().any(CommandPattern::reads_file) {
        let problem = "'<' needs 'contains'".to_owned();
        return Err(invalid("argv", problem));
    }
    Ok(TableEntry { text, patterns })
}

/// Compiles the expressions over lines of output.
pub(super) fn check_expressions(file: &str, text: &EntryDefinition) -> Result<(), TableError> {
    let lists = [
        ("ready", &text.ready),
        ("fail", &text.fail),
        ("url", &text.url),
    ];
    for (field, expressions) in lists {
        for expression in expressions {
            let problem = match regex::Regex::new(expression) {
                Err(error) => error.to_string(),
                Ok(regex) if field == "url" && !names_an_address(&regex) => {
                    format!("'{expression}' has no group named url, port or addr")
                }
                Ok(_) => continue,
            };
            return Err(TableError::Expression {
                file: file.to_owned(),
                id: text.id.clone(),
                field: field.to_owned(),
                problem,
            });
        }
    }
    Ok(())
}

fn names_an_address(regex: &regex::Regex) -> bool {
    let mut names = regex.capture_names().flatten();
    names.any(|name| ["url", "port", "addr"].contains(&name))
}
