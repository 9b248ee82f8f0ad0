//! The modules of a crate depend on each other in one direction: no cycle among its top modules,
//! and below one of them none that is larger than a module and the files of its directory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::Path;

use syn::spanned::Spanned;

use super::diagnostic::Diagnostic;
use super::source::{SourceFile, SourcePackage, SourceToken};

/// Which module uses which, among those with one parent.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The names of the modules from the crate's root to one of them.
type ModulePath = Vec<String>;

/// Cycles among the modules of one package.
pub(super) fn check(package: &SourcePackage) -> Vec<Diagnostic> {
    let modules = Modules::of(package);
    let mut found = Vec::new();
    for (parent, graph) in modules.graphs(package) {
        for cycle in cycles(&graph) {
            let is_directory = |name: &String| modules.has_children(&parent, name);
            if parent.is_empty() || cycle.iter().any(is_directory) {
                let within = std::iter::once("crate").chain(parent.iter().map(String::as_str));
                let message = format!(
                    "modules of {} use each other in a circle: {}",
                    within.collect::<Vec<_>>().join("::"),
                    arrows(&graph, &cycle)
                );
                found.push(Diagnostic::failure(package.name.as_str(), 0, message));
            }
        }
    }
    found
}

/// The uses within a cycle.
fn arrows(graph: &Graph, cycle: &BTreeSet<String>) -> String {
    let used = |user: &String| graph.get(user).into_iter().flatten().cloned();
    let arrows = cycle.iter().flat_map(|user| {
        let within = used(user).filter(|used| cycle.contains(used));
        within.map(move |used| format!("{user} → {used}"))
    });
    arrows.collect::<Vec<_>>().join(", ")
}

/// The modules of a crate that are files.
struct Modules {
    paths: BTreeSet<ModulePath>,
    /// The module that a name of another module is re-exported from.
    reexports: BTreeMap<(ModulePath, String), ModulePath>,
}

impl Modules {
    fn of(package: &SourcePackage) -> Self {
        let path = |source| module_path(&package.dir, source);
        let mut modules = Self {
            paths: package.sources.iter().filter_map(path).collect(),
            reexports: BTreeMap::new(),
        };
        for source in &package.sources {
            let Some(parent) = module_path(&package.dir, source) else {
                continue;
            };
            let uses = source.words.iter().enumerate();
            let uses = uses.filter(|(_, word)| word.text == "use" && !source.is_test(word.line));
            for path in uses.flat_map(|(at, _)| use_paths(&source.words[at + 1..])) {
                let (Some(first), Some(last)) = (path.first(), path.last()) else {
                    continue;
                };
                let child: ModulePath = parent.iter().chain([first]).cloned().collect();
                if path.len() > 1 && modules.paths.contains(&child) {
                    let name = (parent.clone(), last.clone());
                    modules.reexports.insert(name, child);
                }
            }
        }
        modules
    }

    fn has_children(&self, parent: &[String], name: &String) -> bool {
        let module: ModulePath = parent.iter().chain([name]).cloned().collect();
        let mut below = self.paths.iter();
        below.any(|path| path.len() > module.len() && path.starts_with(&module))
    }

    /// The uses between modules with the same parent, by parent; tests left out. A use deeper
    /// within them counts for them.
    fn graphs(&self, package: &SourcePackage) -> BTreeMap<ModulePath, Graph> {
        let mut graphs: BTreeMap<ModulePath, Graph> = BTreeMap::new();
        for source in &package.sources {
            let Some(from) = module_path(&package.dir, source) else {
                continue;
            };
            for to in self.used(source, &from) {
                let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(user), Some(used)) = (from.get(same), to.get(same)) {
                    let graph = graphs.entry(from[..same].to_vec()).or_default();
                    graph.entry(user.clone()).or_default().insert(used.clone());
                }
            }
        }
        graphs
    }

    /// The modules that paths in a file lead to.
    fn used<'a>(
        &'a self,
        source: &'a SourceFile,
        module: &'a [String],
    ) -> impl Iterator<Item = ModulePath> + 'a {
        let words = &source.words;
        let inline = inline_modules(&source.syntax.items);
        let starts = (0..words.len()).filter(move |at| {
            let begins = *at == 0 || words[at - 1].text != ":";
            let line = words[*at].line;
            begins && !source.is_test(line) && !inline.iter().any(|it| it.contains(&line))
        });
        starts.flat_map(move |at| {
            let base = base(&words[at..], module);
            let paths = base.into_iter().flat_map(move |(base, length)| {
                let paths = use_paths(&words[at + length..]).into_iter();
                paths.map(move |path| (base.clone(), path))
            });
            paths.map(|(base, path)| self.resolve(base, path))
        })
    }

    /// The module in which a path ends.
    fn resolve(&self, mut module: ModulePath, path: Vec<String>) -> ModulePath {
        for name in path {
            if let Some(origin) = self.reexports.get(&(module.clone(), name.clone())) {
                module.clone_from(origin);
                continue;
            }
            module.push(name);
            if !self.paths.contains(&module) {
                module.pop();
                break;
            }
        }
        module
    }
}

/// The lines of modules with their content in this file, in which `super` is the file itself.
fn inline_modules(items: &[syn::Item]) -> Vec<RangeInclusive<usize>> {
    let is_inline =
        |item: &&syn::Item| matches!(item, syn::Item::Mod(module) if module.content.is_some());
    let lines = |item: &syn::Item| item.span().start().line..=item.span().end().line;
    items.iter().filter(is_inline).map(lines).collect()
}

/// The path of the module that a file is; none for what lies elsewhere.
fn module_path(package: &str, source: &SourceFile) -> Option<ModulePath> {
    let inside = Path::new(&source.place).strip_prefix(package).ok()?;
    let inside = inside.strip_prefix("src").ok()?.with_extension("");
    let mut path: ModulePath = inside
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if path.first().is_some_and(|first| first == "bin") {
        return None;
    }
    let root = path.len() == 1 && matches!(path[0].as_str(), "lib" | "main");
    if root || path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    Some(path)
}

/// The module that `crate::`, `self::` or one or more `super::` name within a module, and the number
/// of words they take.
fn base(words: &[SourceToken], module: &[String]) -> Option<(ModulePath, usize)> {
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| word.text == text);
    let step = |at: usize, text: &str| is(at, text) && is(at + 1, ":") && is(at + 2, ":");
    if step(0, "crate") {
        return Some((Vec::new(), 3));
    }
    if step(0, "self") {
        return Some((module.to_vec(), 3));
    }
    let ups = (0..).take_while(|up| step(up * 3, "super")).count();
    let length = module.len().checked_sub(ups).filter(|_| ups > 0)?;
    Some((module[..length].to_vec(), ups * 3))
}

/// The paths that begin here, those in braces spelled out.
fn use_paths(words: &[SourceToken]) -> Vec<Vec<String>> {
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    let mut path = Vec::new();
    let mut found = Vec::new();
    let mut words = words.iter().map(|word| word.text.as_str()).peekable();
    let mut is_renamed = false;
    while let Some(word) = words.next() {
        match word {
            "{" => open.push(std::mem::take(&mut path)),
            "," | "}" => {
                if !path.is_empty() {
                    let before = open.concat();
                    found.push(before.into_iter().chain(path.drain(..)).collect());
                }
                is_renamed = false;
                if word == "}" {
                    open.pop();
                }
            }
            "as" => is_renamed = true,
            ":" => {}
            name if is_name(name) && !is_renamed => {
                path.push(name.to_owned());
            }
            _ => {}
        }
        let goes_on = matches!(words.peek(), Some(&(":" | "{"))) || word == ":";
        if open.len() <= 1 && !goes_on {
            break;
        }
    }
    if !path.is_empty() {
        found.push(path);
    }
    found
}

fn is_name(word: &str) -> bool {
    let first = word.chars().next();
    first.is_some_and(|first| first.is_alphabetic() || first == '_')
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
