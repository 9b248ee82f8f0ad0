//! Every Rust file belongs to a crate: rustc compiles only what a `mod` reaches, and says nothing
//! of the rest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use syn::Item;

use super::diagnostic::Diagnostic;
use super::source::SourceFile;

/// Folders of a package whose files are crates of their own.
const TARGETS: &[&str] = &["tests", "examples", "benches", "src/bin", "fuzz_targets"];

/// Files of one package that no crate root reaches.
pub(super) fn check(package: &str, sources: &[SourceFile]) -> Vec<Diagnostic> {
    let declared: BTreeSet<PathBuf> = sources.iter().flat_map(modules).collect();
    let unreachable = sources
        .iter()
        .filter(|source| !is_root(package, &source.place))
        .filter(|source| !declared.contains(Path::new(&source.place)));
    unreachable
        .map(|source| Diagnostic::failure(&source.place, 0, "no `mod` reaches this file"))
        .collect()
}

/// Whether cargo compiles this file as the root of a crate.
fn is_root(package: &str, place: &str) -> bool {
    let Some(inside) = Path::new(place).strip_prefix(package).ok() else {
        return false;
    };
    let fixed = ["build.rs", "src/lib.rs", "src/main.rs"];
    if fixed.iter().any(|root| inside == Path::new(root)) {
        return true;
    }
    let Some(dir) = inside.parent() else {
        return false;
    };
    let target = |dir: &Path| TARGETS.iter().any(|target| dir == Path::new(target));
    let is_main = inside.file_name().is_some_and(|name| name == "main.rs");
    target(dir) || (is_main && dir.parent().is_some_and(target))
}

/// The files that the modules declared in one file may lie in.
fn modules(source: &SourceFile) -> Vec<PathBuf> {
    let place = Path::new(&source.place);
    let parent = place.parent().unwrap_or(Path::new(""));
    let own = match source.name() {
        "lib.rs" | "main.rs" | "mod.rs" => vec![parent.to_owned()],
        // The root of an integration test keeps its modules beside itself.
        _ => vec![place.with_extension(""), parent.to_owned()],
    };
    let mut found = Vec::new();
    collect(&source.syntax.items, &own, parent, &mut found);
    found
}

fn collect(items: &[Item], own: &[PathBuf], parent: &Path, found: &mut Vec<PathBuf>) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        if let Some((_, items)) = &module.content {
            let inner: Vec<_> = own.iter().map(|dir| dir.join(&name)).collect();
            collect(items, &inner, parent, found);
        } else if let Some(path) = module.attrs.iter().find_map(path_attribute) {
            found.push(normal(&parent.join(path)));
        } else {
            for dir in own {
                found.push(dir.join(format!("{name}.rs")));
                found.push(dir.join(&name).join("mod.rs"));
            }
        }
    }
}

/// The value of `#[path = "…"]`.
fn path_attribute(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    let syn::Expr::Lit(literal) = &pair.value else {
        return None;
    };
    match (&literal.lit, pair.path.is_ident("path")) {
        (syn::Lit::Str(path), true) => Some(path.value()),
        _ => None,
    }
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path {
        if part == ".." {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}
