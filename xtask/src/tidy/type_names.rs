//! One name, one meaning: a type that other files may use has a name of its own in the workspace.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Ident, Visibility};

use super::diagnostic::Diagnostic;
use super::source::SourceFile;

/// Names that a crate's users expect, each in its own namespace. `Engine` is the library's handle
/// to the engine.
const CONVENTIONAL: &[&str] = &["Engine", "Error", "Result", "Args"];

/// Where types are defined.
#[derive(Debug, Default)]
pub(super) struct TypeNames(BTreeMap<String, Vec<(String, usize)>>);

impl TypeNames {
    /// Notes the types of a file that others may use.
    pub(super) fn read(&mut self, source: &SourceFile) {
        let mut walk = Definitions(Vec::new());
        walk.visit_file(&source.syntax);
        for (name, line) in walk.0 {
            if !source.is_test(line) && !CONVENTIONAL.contains(&name.as_str()) {
                let places = self.0.entry(name).or_default();
                places.push((source.place.clone(), line));
            }
        }
    }

    /// Every name with more than one definition.
    pub(super) fn check(&self) -> Vec<Diagnostic> {
        let several = self.0.iter().filter(|(_, places)| places.len() > 1);
        several
            .flat_map(|(name, places)| {
                let (first, _) = &places[0];
                places.iter().skip(1).map(move |(place, line)| {
                    let message = format!("`{name}` is a type in {first} too; name what differs");
                    Diagnostic::failure(place, *line, message)
                })
            })
            .collect()
    }
}

/// Definitions that are visible outside their file.
struct Definitions(Vec<(String, usize)>);

impl Definitions {
    fn note(&mut self, visibility: &Visibility, name: &Ident) {
        if !matches!(visibility, Visibility::Inherited) {
            self.0.push((name.to_string(), name.span().start().line));
        }
    }
}

impl<'ast> Visit<'ast> for Definitions {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.note(&item.vis, &item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.note(&item.vis, &item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.note(&item.vis, &item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.note(&item.vis, &item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.note(&item.vis, &item.ident);
    }
}
