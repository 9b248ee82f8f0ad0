//! Tests of the search for circles of modules.

use super::check::failures;
use super::module_cycles;
use super::source::SourcePackage;
use super::tests::source;

/// A package with modules `one` and `two`.
fn two_modules(one: &str, two: &str) -> SourcePackage {
    SourcePackage {
        name: "a".to_owned(),
        dir: "crates/a".to_owned(),
        sources: vec![
            source("crates/a/src/lib.rs", "a", "mod one; mod two;"),
            source("crates/a/src/one.rs", "a", one),
            source("crates/a/src/two/mod.rs", "a", "mod inner;"),
            source("crates/a/src/two/inner.rs", "a", two),
        ],
    }
}

#[test]
fn circles_below_a_module_may_be_no_larger_than_one_directory() {
    let package = |inner: &str, outer: &str| SourcePackage {
        name: "a".to_owned(),
        dir: "crates/a".to_owned(),
        sources: vec![
            source("crates/a/src/lib.rs", "a", "mod top;"),
            source(
                "crates/a/src/top/mod.rs",
                "a",
                "mod one; mod two; pub use two::{Y, inner::Z};",
            ),
            source("crates/a/src/top/one.rs", "a", outer),
            source("crates/a/src/top/two/mod.rs", "a", "mod inner; mod other;"),
            source("crates/a/src/top/two/inner.rs", "a", inner),
            source("crates/a/src/top/two/other.rs", "a", "use super::inner::X;"),
        ],
    };
    let circles = [
        ("use super::super::one::X;", "use super::two::Y;"),
        ("use crate::top::one::X;", "use super::{Z as W, a};"),
        ("fn f() { crate::top::one::g() }", "use super::Y;"),
    ];
    for (inner, outer) in circles {
        let found = failures(&module_cycles::check(&package(inner, outer)));
        assert_eq!(found.len(), 1, "{inner} {outer}: {found:?}");
        assert!(found[0].contains("one → two"), "{found:?}");
    }
    let allowed = [
        ("use super::other::X;", "use super::two::Y;"),
        ("use crate::top::one::X;", "mod tests { use super::Y; }"),
        (
            "use crate::top::one::X;",
            "#[cfg(test)] mod t { use crate::top::Y; }",
        ),
    ];
    for (inner, outer) in allowed {
        let found = failures(&module_cycles::check(&package(inner, outer)));
        assert_eq!(found, [""; 0], "{inner} {outer}");
    }
}

#[test]
fn modules_in_a_circle_are_found() {
    let circles = [
        ("use crate::two::X;", "fn f() { crate::one::g() }"),
        ("use crate::{two, three};", "use super::super::one;"),
    ];
    for (one, two) in circles {
        let found = failures(&module_cycles::check(&two_modules(one, two)));
        assert_eq!(found.len(), 1, "{one} {two}: {found:?}");
    }
    let straight = [
        ("use crate::two::X;", "use super::other;"),
        (
            "use crate::two::X;",
            "#[cfg(test)] mod tests { use crate::one; }",
        ),
        ("use std::two;", "use crate::one;"),
    ];
    for (one, two) in straight {
        let found = failures(&module_cycles::check(&two_modules(one, two)));
        assert_eq!(found, [""; 0], "{one} {two}");
    }
}
