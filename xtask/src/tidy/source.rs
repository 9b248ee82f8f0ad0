//! Rust source files for the rules: crate, test code, and tokens by line.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;

use crate::repository_files::files_below;

#[derive(Debug)]
pub(super) struct SourceFile {
    /// The path relative to the repository's root.
    pub(super) place: String,
    /// The name of the crate.
    pub(super) krate: String,
    pub(super) text: String,
    pub(super) syntax: syn::File,
    /// All tokens outside comments, flat.
    pub(super) words: Vec<SourceToken>,
    /// Which parts of it are test code.
    pub(super) tests: TestScope,
}

/// All files of one crate.
#[derive(Debug)]
pub(super) struct SourcePackage {
    /// The crate's name.
    pub(super) name: String,
    /// Its directory, from the repository's root.
    pub(super) dir: String,
    /// Its Rust files, sorted by path.
    pub(super) sources: Vec<SourceFile>,
}

impl SourcePackage {
    /// Reads every Rust file below the directory of a manifest.
    pub(super) fn read(root: &Path, manifest: &Path, name: &str) -> Result<Self> {
        let dir = manifest.parent().unwrap_or(root);
        let sources = files_below(dir, &["rs"])?
            .iter()
            .map(|path| SourceFile::read(root, path, name))
            .collect::<Result<_>>()?;
        let dir = dir.strip_prefix(root).unwrap_or(dir);
        Ok(Self {
            name: name.to_owned(),
            dir: dir.to_string_lossy().into_owned(),
            sources,
        })
    }
}

/// The test code of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TestScope {
    Whole,
    /// These ranges of lines.
    Lines(Vec<RangeInclusive<usize>>),
}

/// One token; a literal's content is never a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceToken {
    /// The text; `""` for any literal.
    pub(super) text: String,
    /// The line, from 1.
    pub(super) line: usize,
}

impl SourceFile {
    /// Reads one file of a crate.
    pub(super) fn read(root: &Path, path: &Path, krate: &str) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        let place = path
            .strip_prefix(root)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned();
        Self::parse(&place, krate, text)
    }

    /// Parses a file from its text.
    pub(super) fn parse(place: &str, krate: &str, text: String) -> Result<Self> {
        let syntax = syn::parse_file(&text).with_context(|| format!("{place} is not Rust"))?;
        let stream: TokenStream = text
            .parse()
            .map_err(|error| anyhow::anyhow!("{place} is not Rust: {error}"))?;
        let mut words = Vec::new();
        flatten(stream, &mut words);
        let tests = if is_test_file(place) {
            TestScope::Whole
        } else {
            TestScope::Lines(test_lines(&syntax.items))
        };
        Ok(Self {
            place: place.to_owned(),
            krate: krate.to_owned(),
            text,
            syntax,
            words,
            tests,
        })
    }

    /// Whether it is the build script of its crate, which cargo runs.
    pub(super) fn is_build_script(&self) -> bool {
        let names: Vec<&str> = self.place.split('/').collect();
        matches!(names[..], ["crates", _, "build.rs"])
    }

    /// Whether this line is test code.
    pub(super) fn is_test(&self, line: usize) -> bool {
        match &self.tests {
            TestScope::Whole => true,
            TestScope::Lines(ranges) => ranges.iter().any(|range| range.contains(&line)),
        }
    }

    /// Whether it is in a directory of this name below its crate.
    pub(super) fn is_below(&self, directory: &str) -> bool {
        Path::new(&self.place).iter().any(|part| part == directory)
    }

    /// The last component of its path.
    pub(super) fn name(&self) -> &str {
        self.place.rsplit('/').next().unwrap_or(&self.place)
    }
}

/// Whether a file holds only tests, benchmarks or examples, by its path.
fn is_test_file(place: &str) -> bool {
    let path = Path::new(place);
    let by_directory = ["tests", "benches", "examples", "testing"];
    path.parent().is_some_and(|dir| {
        dir.iter()
            .any(|part| by_directory.iter().any(|d| part == *d))
    }) || path.file_stem().is_some_and(|stem| {
        stem.to_str()
            .is_some_and(|stem| stem == "tests" || stem.ends_with("_tests"))
    })
}

/// The lines of items marked `#[cfg(test)]` or `#[test]`.
fn test_lines(items: &[syn::Item]) -> Vec<RangeInclusive<usize>> {
    items
        .iter()
        .filter(|item| attributes(item).iter().any(marks_test))
        .map(|item| item.span().start().line..=item.span().end().line)
        .collect()
}

/// Whether an attribute marks its item as test code.
pub(super) fn marks_test(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("cfg") {
        return attribute
            .parse_args::<syn::Meta>()
            .is_ok_and(|meta| meta.path().is_ident("test"));
    }
    attribute
        .path()
        .segments
        .last()
        .is_some_and(|segment| segment.ident == "test")
}

/// The attributes of an item.
pub(super) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item;
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Verbatim(_) | _ => &[],
    }
}

fn flatten(stream: TokenStream, words: &mut Vec<SourceToken>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Ident(ident) => words.push(SourceToken {
                text: ident.to_string(),
                line,
            }),
            TokenTree::Punct(punct) => words.push(SourceToken {
                text: punct.as_char().to_string(),
                line,
            }),
            TokenTree::Literal(_) => words.push(SourceToken {
                text: String::new(),
                line,
            }),
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                words.push(SourceToken {
                    text: open.to_owned(),
                    line,
                });
                let end = group.span_close().end().line;
                flatten(group.stream(), words);
                words.push(SourceToken {
                    text: close.to_owned(),
                    line: end,
                });
            }
        }
    }
}

const fn brackets(delimiter: proc_macro2::Delimiter) -> (&'static str, &'static str) {
    use proc_macro2::Delimiter;
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}
