//! Forbidden calls and words, and the crates that may use them.

use syn::UseTree;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::diagnostic::Diagnostic;
use super::source::{SourceFile, SourceToken};

/// A sequence of words and where it is allowed.
struct ForbiddenRule {
    /// The words, in order; `*` stands for any one.
    words: &'static [&'static str],
    /// The same as a path in a `use` declaration, if it can be imported.
    import: Option<&'static str>,
    /// Crates where it is allowed.
    allowed_crates: &'static [&'static str],
    /// Whether all tests and build scripts may use it.
    in_tests: bool,
    /// What to do instead.
    advice: &'static str,
}

const fn rule(words: &'static [&'static str], advice: &'static str) -> ForbiddenRule {
    ForbiddenRule {
        words,
        import: None,
        allowed_crates: &[],
        in_tests: false,
        advice,
    }
}

impl ForbiddenRule {
    const fn import(mut self, path: &'static str) -> Self {
        self.import = Some(path);
        self
    }

    const fn only_in(mut self, homes: &'static [&'static str]) -> Self {
        self.allowed_crates = homes;
        self
    }

    const fn allowed_in_tests(mut self) -> Self {
        self.in_tests = true;
        self
    }
}

const PRINTING_CRATES: &[&str] = &[
    "ostler-bench",
    "ostler-cli",
    "ostler-fuzz",
    "ostler-testkit",
    "xtask",
];
/// Binaries whose input is the environment that they are started with.
const ENVIRONMENT_CRATES: &[&str] = &[
    "ostler-bench",
    "ostler-cli",
    "ostler-container-init",
    "ostler-fuzz",
    "ostler-testkit",
    "xtask",
];
const STDOUT: &str = "standard output is the MCP wire; only cli speaks to people";
const EXPECT: &str = "use #[expect(…, reason = …)], which ends with its cause";
const FACTS: &str = "wait for the fact, not for time; sleep_until for deadlines";
const EDGES: &str = "only cli reads the environment; take the value as an argument";

const RULES: &[ForbiddenRule] = &[
    rule(&["#", "[", "allow", "("], EXPECT),
    rule(&["#", "!", "[", "allow", "("], EXPECT),
    rule(&["cfg_attr", "(", "*", ",", "allow", "("], EXPECT),
    rule(&["todo", "!"], "finish it"),
    rule(&["unimplemented", "!"], "finish it"),
    rule(&["dbg", "!"], "remove it"),
    rule(&["println", "!"], STDOUT)
        .only_in(PRINTING_CRATES)
        .allowed_in_tests(),
    rule(&["print", "!"], STDOUT)
        .only_in(PRINTING_CRATES)
        .allowed_in_tests(),
    rule(&["eprintln", "!"], STDOUT)
        .only_in(PRINTING_CRATES)
        .allowed_in_tests(),
    rule(&["eprint", "!"], STDOUT)
        .only_in(PRINTING_CRATES)
        .allowed_in_tests(),
    rule(
        &["process", ":", ":", "exit"],
        "return an ExitCode from main",
    )
    .import("std::process::exit")
    .only_in(&["ostler-cli", "ostler-backend-local", "ostler-testkit"]),
    rule(&["std", ":", ":", "env"], EDGES)
        .import("std::env")
        .only_in(ENVIRONMENT_CRATES)
        .allowed_in_tests(),
    rule(
        &["unsafe"],
        "unsafe code lives in sys, sandbox and backend-local",
    )
    .only_in(&["ostler-backend-local", "ostler-sandbox", "ostler-sys"]),
    rule(&["thread", ":", ":", "sleep"], FACTS)
        .import("std::thread::sleep")
        .only_in(&["ostler-testkit"]),
    rule(&["time", ":", ":", "sleep", "("], FACTS).import("tokio::time::sleep"),
    rule(
        &["tokio", ":", ":", "spawn"],
        "no detached tasks: a TaskTracker or JoinSet",
    )
    .import("tokio::spawn"),
    rule(
        &["task", ":", ":", "spawn", "("],
        "no detached tasks: a TaskTracker or JoinSet",
    )
    .import("tokio::task::spawn"),
    rule(
        &["Other", "(", "String", ")"],
        "name the failure: one variant each",
    ),
    rule(&["rmcp"], "only mcp knows MCP").only_in(&["ostler-mcp"]),
    rule(&["schemars"], "only mcp knows JSON schema").only_in(&["ostler-mcp"]),
    rule(&["rusqlite"], "only store knows SQL").only_in(&["ostler-store"]),
    rule(&["tokio_postgres"], "only store knows SQL").only_in(&["ostler-store"]),
];

/// Finds all forbidden words in a file.
pub(super) fn check(source: &SourceFile) -> Vec<Diagnostic> {
    let mut findings: Vec<Diagnostic> = RULES
        .iter()
        .flat_map(|rule| token_violations(source, rule))
        .collect();
    findings.extend(import_violations(source));
    findings.sort();
    findings.dedup_by(|a, b| (&a.path, a.line) == (&b.path, b.line) && a.message == b.message);
    findings
}

fn token_violations(source: &SourceFile, rule: &ForbiddenRule) -> Vec<Diagnostic> {
    let length = rule.words.len();
    let hits = source
        .words
        .windows(length)
        .filter(|window| matches_tokens(window, rule.words));
    let lines = hits
        .map(|window| window[0].line)
        .filter(|line| !is_permitted(source, rule, *line));
    lines.map(|line| finding(source, rule, line)).collect()
}

fn matches_tokens(window: &[SourceToken], words: &[&str]) -> bool {
    window
        .iter()
        .zip(words)
        .all(|(word, wanted)| *wanted == "*" || word.text == *wanted)
}

fn is_permitted(source: &SourceFile, rule: &ForbiddenRule, line: usize) -> bool {
    let is_shipped = !source.is_test(line) && !source.is_build_script();
    rule.allowed_crates.contains(&source.krate.as_str()) || (rule.in_tests && !is_shipped)
}

fn finding(source: &SourceFile, rule: &ForbiddenRule, line: usize) -> Diagnostic {
    let what = rule.words.concat();
    Diagnostic::failure(&source.place, line, format!("`{what}`: {}", rule.advice))
}

/// Finds imports of what the rules forbid, and of the fake backend by tests of the public
/// interface.
fn import_violations(source: &SourceFile) -> Vec<Diagnostic> {
    let mut imports = ImportVisitor(Vec::new());
    imports.visit_file(&source.syntax);
    let mut findings = Vec::new();
    for (path, line) in imports.0 {
        let broken = RULES.iter().filter(|rule| {
            rule.import
                .is_some_and(|import| is_import_of(&path, import))
                && !is_permitted(source, rule, line)
        });
        findings.extend(broken.map(|rule| finding(source, rule, line)));
        if source.is_below("tests") && is_import_of(&path, "ostler_testkit::scripted") {
            let message = "tests of the public interface use a real place, not the scripted one";
            findings.push(Diagnostic::failure(&source.place, line, message));
        }
    }
    findings
}

/// Whether an imported path is this one or an item in it.
fn is_import_of(path: &str, wanted: &str) -> bool {
    path.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Collects every path that `use` declarations import, with its line.
struct ImportVisitor(Vec<(String, usize)>);

impl ImportVisitor {
    fn expand(&mut self, prefix: &str, tree: &UseTree) {
        let below = |name: &syn::Ident| match prefix {
            "" => name.to_string(),
            prefix => format!("{prefix}::{name}"),
        };
        let line = tree.span().start().line;
        match tree {
            UseTree::Path(path) => self.expand(&below(&path.ident), &path.tree),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.expand(prefix, tree);
                }
            }
            UseTree::Name(name) if name.ident == "self" => self.0.push((prefix.to_owned(), line)),
            UseTree::Name(name) => self.0.push((below(&name.ident), line)),
            UseTree::Rename(name) => self.0.push((below(&name.ident), line)),
            UseTree::Glob(_) => self.0.push((prefix.to_owned(), line)),
        }
    }
}

impl<'ast> Visit<'ast> for ImportVisitor {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.expand("", &item.tree);
        visit::visit_item_use(self, item);
    }
}
