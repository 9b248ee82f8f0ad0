//! Calls and words that belong to certain rooms, or to none (specification 01 §5).

use syn::UseTree;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::finding::Finding;
use super::source::{Source, Word};

/// A word sequence and where it may stand.
struct Rule {
    /// The words, in order; `*` stands for any one.
    words: &'static [&'static str],
    /// The same as a path in a `use`, where it can be imported.
    import: Option<&'static str>,
    /// Crates where it may stand.
    homes: &'static [&'static str],
    /// Whether tests may use it everywhere.
    in_tests: bool,
    /// What to do instead.
    advice: &'static str,
}

const fn rule(words: &'static [&'static str], advice: &'static str) -> Rule {
    Rule {
        words,
        import: None,
        homes: &[],
        in_tests: false,
        advice,
    }
}

impl Rule {
    const fn import(mut self, path: &'static str) -> Self {
        self.import = Some(path);
        self
    }

    const fn only_in(mut self, homes: &'static [&'static str]) -> Self {
        self.homes = homes;
        self
    }

    const fn tests_may(mut self) -> Self {
        self.in_tests = true;
        self
    }
}

const PEOPLE: &[&str] = &["ostler-cli", "ostler-fuzz", "ostler-testkit", "xtask"];
const STDOUT: &str = "standard output is the MCP wire; only cli speaks to people";
const EXPECT: &str = "use #[expect(…, reason = …)], which ends with its cause";
const FACTS: &str = "wait for the fact, not for time; sleep_until for deadlines";
const EDGES: &str = "only cli reads the environment; take the value as an argument";

const RULES: &[Rule] = &[
    rule(&["#", "[", "allow", "("], EXPECT),
    rule(&["#", "!", "[", "allow", "("], EXPECT),
    rule(&["cfg_attr", "(", "*", ",", "allow", "("], EXPECT),
    rule(&["todo", "!"], "finish it"),
    rule(&["unimplemented", "!"], "finish it"),
    rule(&["dbg", "!"], "remove it"),
    rule(&["println", "!"], STDOUT).only_in(PEOPLE).tests_may(),
    rule(&["print", "!"], STDOUT).only_in(PEOPLE).tests_may(),
    rule(&["eprintln", "!"], STDOUT).only_in(PEOPLE).tests_may(),
    rule(&["eprint", "!"], STDOUT).only_in(PEOPLE).tests_may(),
    rule(
        &["process", ":", ":", "exit"],
        "return an ExitCode from main",
    )
    .import("std::process::exit")
    .only_in(&["ostler-cli", "ostler-process", "ostler-testkit"]),
    rule(&["std", ":", ":", "env"], EDGES)
        .import("std::env")
        .only_in(PEOPLE)
        .tests_may(),
    rule(&["unsafe"], "unsafe code lives in process and sandbox")
        .only_in(&["ostler-process", "ostler-sandbox"]),
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
    rule(&["rmcp"], "only server knows MCP").only_in(&["ostler-server"]),
    rule(&["schemars"], "only server knows JSON schema").only_in(&["ostler-server"]),
    rule(&["rusqlite"], "only catalog knows SQL").only_in(&["ostler-catalog"]),
];

/// Everything that stands where it may not.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| spoken(source, rule)).collect();
    findings.extend(imported(source));
    findings.sort();
    findings.dedup_by(|a, b| (&a.place, a.line) == (&b.place, b.line) && a.message == b.message);
    findings
}

fn spoken(source: &Source, rule: &Rule) -> Vec<Finding> {
    let length = rule.words.len();
    let hits = source
        .words
        .windows(length)
        .filter(|window| says(window, rule.words));
    let lines = hits
        .map(|window| window[0].line)
        .filter(|line| !permitted(source, rule, *line));
    lines.map(|line| finding(source, rule, line)).collect()
}

fn says(window: &[Word], words: &[&str]) -> bool {
    window
        .iter()
        .zip(words)
        .all(|(word, wanted)| *wanted == "*" || word.text == *wanted)
}

fn permitted(source: &Source, rule: &Rule, line: usize) -> bool {
    rule.homes.contains(&source.krate.as_str()) || (rule.in_tests && source.is_test(line))
}

fn finding(source: &Source, rule: &Rule, line: usize) -> Finding {
    let what = rule.words.concat();
    Finding::failure(&source.place, line, format!("`{what}`: {}", rule.advice))
}

/// Imports of what the rules forbid, and of the scripted place by tests that claim to go
/// through the public interface.
fn imported(source: &Source) -> Vec<Finding> {
    let mut imports = Imports(Vec::new());
    imports.visit_file(&source.syntax);
    let mut findings = Vec::new();
    for (path, line) in imports.0 {
        let broken = RULES.iter().filter(|rule| {
            rule.import.is_some_and(|import| reaches(&path, import))
                && !permitted(source, rule, line)
        });
        findings.extend(broken.map(|rule| finding(source, rule, line)));
        if source.below("tests") && reaches(&path, "ostler_testkit::scripted") {
            let message = "tests of the public interface use a real place, not the scripted one";
            findings.push(Finding::failure(&source.place, line, message));
        }
    }
    findings
}

/// Whether an imported path is this one or something in it.
fn reaches(path: &str, wanted: &str) -> bool {
    path.strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Every path that `use` brings in, with its line.
struct Imports(Vec<(String, usize)>);

impl Imports {
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

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.expand("", &item.tree);
        visit::visit_item_use(self, item);
    }
}
