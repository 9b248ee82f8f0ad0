//! `lib.rs` and `mod.rs` hold documentation, modules, re-exports, and nothing else.

use syn::Item;
use syn::spanned::Spanned;

use super::diagnostic::Diagnostic;
use super::source::{SourceFile, attributes, marks_test};

/// Crates where `unsafe` may be written at all.
const UNSAFE_HOMES: &[&str] = &["ostler-backend-local", "ostler-sandbox", "ostler-sys"];

/// Checks this rule and the crate-wide ban on `unsafe`.
pub(super) fn check(source: &SourceFile) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    if matches!(source.name(), "lib.rs" | "mod.rs") && !source.is_below("tests") {
        findings.extend(logic_in_mod_files(source));
    }
    if is_crate_root(source)
        && !UNSAFE_HOMES.contains(&source.krate.as_str())
        && !forbids_unsafe(source)
    {
        findings.push(Diagnostic::failure(
            &source.place,
            0,
            "lacks #![forbid(unsafe_code)]",
        ));
    }
    findings
}

fn logic_in_mod_files(source: &SourceFile) -> Vec<Diagnostic> {
    let not_a_map = |item: &&Item| {
        if let Item::Mod(item) = item {
            return item.content.is_some() && !item.attrs.iter().any(marks_test);
        }
        let lists = matches!(item, Item::Use(_) | Item::ExternCrate(_));
        !lists && !attributes(item).iter().any(marks_test)
    };
    let found = source.syntax.items.iter().filter(not_a_map);
    found
        .map(|item| {
            let line = item.span().start().line;
            Diagnostic::failure(
                &source.place,
                line,
                "a map holds only docs, mod and use; move this out",
            )
        })
        .collect()
}

fn is_crate_root(source: &SourceFile) -> bool {
    source.place.ends_with("src/lib.rs") || source.place.ends_with("src/main.rs")
}

fn forbids_unsafe(source: &SourceFile) -> bool {
    source.syntax.attrs.iter().any(|attribute| {
        attribute.path().is_ident("forbid")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("unsafe_code"))
    })
}
