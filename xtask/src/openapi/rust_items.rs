//! The items of the crates that the document is made from, by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use syn::{Block, Expr, ImplItem, Item, ItemConst, ItemEnum, ItemFn, ItemStruct, Type, Visibility};

use crate::repository_files::files_below;

/// The directories that are read: bodies and what they consist of, and the routes.
const DIRECTORIES: [&str; 6] = [
    "crates/model/src",
    "crates/journal/src",
    "crates/api/src",
    "crates/engine/src",
    "crates/interface/src",
    "crates/http/src/rest",
];
/// The directory of the routes.
pub(super) const REST: &str = "crates/http/src/rest";

/// A type that stands in a body.
#[derive(Debug, Clone, Copy)]
pub(super) enum RustType<'a> {
    Struct(&'a ItemStruct),
    Enum(&'a ItemEnum),
}

/// Parsed files by their path from the repository's root.
#[derive(Debug)]
pub(super) struct RustItems {
    files: BTreeMap<String, syn::File>,
}

impl RustItems {
    /// Parses the files below [`DIRECTORIES`].
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        for directory in DIRECTORIES {
            for path in files_below(&root.join(directory), &["rs"])? {
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let file = syn::parse_file(&text).with_context(|| path.display().to_string())?;
                let place = path.strip_prefix(root).unwrap_or(&path);
                files.insert(place.to_string_lossy().into_owned(), file);
            }
        }
        Ok(Self { files })
    }

    /// Files with these texts; for tests.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Result<Self> {
        let parsed = files
            .iter()
            .map(|(place, text)| Ok(((*place).to_owned(), syn::parse_file(text)?)));
        Ok(Self {
            files: parsed.collect::<Result<_>>()?,
        })
    }

    /// The public type of this name; a name has one meaning in the workspace.
    pub(super) fn type_named(&self, name: &str) -> Result<RustType<'_>> {
        let types = self.items().filter_map(|(_, item)| match item {
            Item::Struct(it) if it.ident == name => public(&it.vis, RustType::Struct(it)),
            Item::Enum(it) if it.ident == name => public(&it.vis, RustType::Enum(it)),
            Item::Verbatim(_) | _ => None,
        });
        let mut types = types;
        types
            .next()
            .with_context(|| format!("no public type {name} in {}", DIRECTORIES.join(", ")))
    }

    /// The value of the constant that this name means in a file: one of its own, or an imported one.
    pub(super) fn constant(&self, place: &str, name: &str) -> Result<(&str, &Expr)> {
        let named = |(_, it): &(&str, &ItemConst)| it.ident == name;
        let constants = || {
            self.items().filter_map(|(place, item)| match item {
                Item::Const(it) => Some((place, it)),
                Item::Verbatim(_) | _ => None,
            })
        };
        let own = constants().filter(named).find(|(from, _)| *from == place);
        let mut others = constants()
            .filter(named)
            .filter(|(_, it)| !matches!(it.vis, Visibility::Inherited));
        let constant = own.or_else(|| others.next());
        let (place, constant) =
            constant.with_context(|| format!("{place}: no constant {name} is known"))?;
        Ok((place, &constant.expr))
    }

    /// The function `module::name` of the routes, and its file.
    pub(super) fn handler(&self, module: &str, name: &str) -> Result<(&str, &ItemFn)> {
        let file = format!("{REST}/{module}.rs");
        let directory = format!("{REST}/{module}/");
        let functions = self.functions().filter(|(place, function)| {
            let is_of_module = *place == file || place.starts_with(&directory);
            is_of_module && function.sig.ident == name
        });
        match functions.collect::<Vec<_>>()[..] {
            [function] => Ok(function),
            [] => bail!("{file}: no function {name}"),
            _ => bail!("{file}: more than one function {name}"),
        }
    }

    /// The function of this name in a file.
    pub(super) fn function(&self, place: &str, name: &str) -> Result<&ItemFn> {
        let mut functions = self.functions();
        let found = functions.find(|(it, function)| *it == place && function.sig.ident == name);
        let (_, function) = found.with_context(|| format!("{place}: no function {name}"))?;
        Ok(function)
    }

    /// The functions of all files.
    pub(super) fn functions(&self) -> impl Iterator<Item = (&str, &ItemFn)> {
        self.items().filter_map(|(place, item)| match item {
            Item::Fn(it) => Some((place, it)),
            Item::Verbatim(_) | _ => None,
        })
    }

    /// The bodies of the functions of this name that a type has.
    pub(super) fn methods(&self, of: &str, name: &str) -> impl Iterator<Item = (&str, &Block)> {
        let blocks = self.items().filter_map(move |(place, item)| match item {
            Item::Impl(it) if it.trait_.is_none() && is_named(&it.self_ty, of) => Some((place, it)),
            Item::Verbatim(_) | _ => None,
        });
        blocks.flat_map(move |(place, it)| {
            it.items.iter().filter_map(move |item| match item {
                ImplItem::Fn(it) if it.sig.ident == name => Some((place, &it.block)),
                ImplItem::Verbatim(_) | _ => None,
            })
        })
    }

    /// All items outside functions and modules.
    fn items(&self) -> impl Iterator<Item = (&str, &Item)> {
        let files = self.files.iter();
        files.flat_map(|(place, file)| file.items.iter().map(|item| (place.as_str(), item)))
    }
}

fn is_named(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|it| it.ident == name),
        Type::Verbatim(_) | _ => false,
    }
}

fn public<'a>(visibility: &Visibility, found: RustType<'a>) -> Option<RustType<'a>> {
    matches!(visibility, Visibility::Public(_)).then_some(found)
}
