//! The top modules of a crate depend on each other in one direction: no cycle among them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::diagnostic::Diagnostic;
use super::source::{SourceFile, SourcePackage, SourceToken};

/// Which top module uses which, in one crate.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Cycles that are still there: `(crate, its modules in one cycle)`. Nothing may join them.
const KNOWN: &[(&str, &[&str])] = &[
    ("ostler-api", &["info", "service", "wait"]),
    ("ostler-api", &["service_request", "start"]),
    ("ostler-backend", &["execution_dir", "prepared_dir"]),
    ("ostler-backend-local", &["open_files", "sys"]),
    (
        "ostler-cli",
        &[
            "args",
            "attach",
            "client",
            "commands",
            "config",
            "context",
            "daemon",
            "doctor",
            "output",
            "paths",
            "stdio_protocol",
            "stdio_proxy",
        ],
    ),
    ("ostler-detect", &["detector", "port", "table", "wrappers"]),
    (
        "ostler-egress",
        &["dns_server", "inbound", "outbound", "server"],
    ),
    (
        "ostler-engine",
        &[
            "admission",
            "damaged",
            "dismissal_file",
            "driver",
            "engine",
            "engine_inner",
            "error",
            "execution",
            "follow",
            "info",
            "interaction",
            "json_file",
            "quota_queue",
            "recover",
            "registry",
            "retention",
            "service",
            "session_end",
            "settings",
            "start",
            "start_id",
            "stop",
            "summary",
            "terminal",
            "unwritten",
            "watch",
        ],
    ),
    ("ostler-journal", &["filter", "line_range"]),
    ("ostler-journal", &["line_start", "scan"]),
    (
        "ostler-journal",
        &[
            "memory_ring",
            "open_files",
            "record_iter",
            "repair",
            "retention",
            "segment",
            "snapshot",
            "writer",
        ],
    ),
    ("ostler-journal", &["pattern", "query"]),
    ("ostler-model", &["autorun", "overlay"]),
    ("ostler-model", &["isolation", "sandbox_spec", "snapshot"]),
    ("ostler-model", &["service", "spec"]),
    ("ostler-policy", &["load", "ruleset"]),
    ("ostler-policy", &["shell", "wrappers"]),
    (
        "ostler-render",
        &[
            "condense",
            "cost",
            "excerpt",
            "redraw",
            "rows",
            "select_lines",
            "stream_budget",
        ],
    ),
    ("ostler-sandbox", &["autorun", "overlay"]),
    ("ostler-server", &["http", "mcp"]),
    ("xtask", &["chaos", "test"]),
];

/// Cycles among the top modules of one package.
pub(super) fn check(package: &SourcePackage) -> Vec<Diagnostic> {
    let krate = package.name.as_str();
    let graph = graph(&package.dir, &package.sources);
    let mut findings = Vec::new();
    for cycle in cycles(&graph) {
        let known = KNOWN.iter().any(|(name, modules)| {
            *name == krate
                && cycle
                    .iter()
                    .all(|module| modules.contains(&module.as_str()))
        });
        if !known {
            let names: Vec<_> = cycle.iter().map(String::as_str).collect();
            let message = format!("modules use each other in a circle: {}", names.join(", "));
            findings.push(Diagnostic::failure(krate, 0, message));
        }
    }
    findings
}

/// The uses between top modules, tests left out.
pub(super) fn graph(package: &str, sources: &[SourceFile]) -> Graph {
    let modules: BTreeSet<String> = sources
        .iter()
        .filter_map(|source| top_module(package, source))
        .collect();
    let mut graph = Graph::new();
    for source in sources {
        let Some(from) = top_module(package, source) else {
            continue;
        };
        let depth = depth(package, source);
        let to = used(source, depth).filter(|name| modules.contains(name) && *name != from);
        graph.entry(from.clone()).or_default().extend(to);
    }
    graph
}

/// The first module name below `src`; nothing for the crate's root and for what lies elsewhere.
fn top_module(package: &str, source: &SourceFile) -> Option<String> {
    let inside = Path::new(&source.place).strip_prefix(package).ok()?;
    let mut parts = inside.strip_prefix("src").ok()?.iter();
    let name = parts.next()?.to_str()?.trim_end_matches(".rs").to_owned();
    (!matches!(name.as_str(), "lib" | "main" | "bin")).then_some(name)
}

/// How many modules lie between the crate's root and a file's own items.
fn depth(package: &str, source: &SourceFile) -> usize {
    let inside = Path::new(&source.place).strip_prefix(package).ok();
    let parts = inside.map_or(0, |path| path.iter().count());
    match source.name() {
        "mod.rs" => parts - 2,
        _ => parts - 1,
    }
}

/// First names of paths that begin at the crate's root.
fn used(source: &SourceFile, depth: usize) -> impl Iterator<Item = String> {
    let words = &source.words;
    let starts = (0..words.len()).filter_map(move |at| {
        let length = root_prefix(&words[at..], depth)?;
        (at == 0 || words[at - 1].text != ":").then_some(at + length)
    });
    starts
        .filter(|at| {
            words
                .get(*at)
                .is_some_and(|word| !source.is_test(word.line))
        })
        .flat_map(|at| names(&words[at..]))
}

/// How many words `crate::` takes, or as many `super::` as lead to the root.
fn root_prefix(words: &[SourceToken], depth: usize) -> Option<usize> {
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| word.text == text);
    let step = |at: usize, text: &str| is(at, text) && is(at + 1, ":") && is(at + 2, ":");
    if step(0, "crate") {
        return Some(3);
    }
    let ups = (0..depth).take_while(|up| step(up * 3, "super")).count();
    (ups == depth && depth > 0).then_some(depth * 3)
}

/// The name at the head of a path, or those at the head of each path in braces.
fn names(words: &[SourceToken]) -> Vec<String> {
    let Some(first) = words.first() else {
        return Vec::new();
    };
    if first.text != "{" {
        return vec![first.text.clone()];
    }
    let mut level = 0;
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match word.text.as_str() {
            "{" => level += 1,
            "}" => level -= 1,
            name if level == 1 && matches!(words[at - 1].text.as_str(), "{" | ",") => {
                found.push(name.to_owned());
            }
            _ => {}
        }
        if level == 0 {
            break;
        }
    }
    found
}

/// Groups of modules that reach each other.
pub(super) fn cycles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeSet<String>> = graph
        .keys()
        .map(|module| (module, reachable(graph, module)))
        .collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (module, reached) in &reach {
        if !reached.contains(*module) || found.iter().any(|cycle| cycle.contains(*module)) {
            continue;
        }
        let back = |other: &&String| reach.get(other).is_some_and(|from| from.contains(*module));
        found.push(reached.iter().filter(back).cloned().collect());
    }
    found
}

/// What can be reached from a module in at least one step.
fn reachable(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&String> = graph.get(from).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module.clone()) {
            next.extend(graph.get(module).into_iter().flatten());
        }
    }
    reached
}
