//! Sets of projects: what the token of a caller is limited to.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Projects by name. A project whose name is an absolute path is that directory tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProjectSet {
    /// Every project, and what belongs to none.
    #[default]
    All,
    /// These, and nothing that belongs to none.
    Named(BTreeSet<String>),
}

impl ProjectSet {
    /// The set of these projects.
    #[must_use]
    pub fn named<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Self {
        Self::Named(names.into_iter().map(Into::into).collect())
    }

    /// The set without a project.
    #[must_use]
    pub fn none() -> Self {
        Self::Named(BTreeSet::new())
    }

    /// Whether it holds every project.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether it holds no project.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names().is_some_and(BTreeSet::is_empty)
    }

    /// The names in it; none where it holds every project.
    #[must_use]
    pub fn names(&self) -> Option<&BTreeSet<String>> {
        match self {
            Self::All => None,
            Self::Named(names) => Some(names),
        }
    }

    /// The only project in it.
    #[must_use]
    pub fn single(&self) -> Option<&str> {
        let names = self.names().filter(|names| names.len() == 1)?;
        names.first().map(String::as_str)
    }

    /// Whether what belongs to this project, or to none, is in it.
    #[must_use]
    pub fn contains(&self, project: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => project.is_some_and(|project| names.contains(project)),
        }
    }

    /// The projects in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::Named(one), Self::Named(two)) => Self::named(one.union(two).cloned()),
        }
    }
}

/// The projects of one request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ProjectView {
    /// Those that the caller sees.
    pub visible: ProjectSet,
    /// Those that the request is about: all of the visible ones where it changes nothing, else those
    /// that the caller may change.
    pub reachable: ProjectSet,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_it_names_and_nothing_without_a_project() {
        let set = ProjectSet::named(["/a", "b"]);
        assert!(set.contains(Some("/a")) && set.contains(Some("b")));
        assert!(!set.contains(Some("/a/b")) && !set.contains(Some("")) && !set.contains(None));
        assert!(ProjectSet::All.contains(None) && ProjectSet::All.contains(Some("x")));
        assert!(!ProjectSet::none().contains(None) && ProjectSet::none().is_empty());
        assert!(!ProjectSet::All.is_empty() && !set.is_empty());
        assert_eq!(ProjectSet::named(["b"]).single(), Some("b"));
        assert_eq!(set.single(), None);
        assert_eq!(ProjectSet::All.single(), None);
    }

    #[test]
    fn a_union_holds_what_either_holds() {
        let (one, two) = (ProjectSet::named(["a"]), ProjectSet::named(["b"]));
        assert_eq!(one.union(&two), ProjectSet::named(["a", "b"]));
        assert_eq!(one.union(&ProjectSet::All), ProjectSet::All);
        assert_eq!(ProjectSet::All.union(&one), ProjectSet::All);
        assert_eq!(one.union(&ProjectSet::none()), one);
    }
}
