//! A parameter is one value with a name: a tuple evades the limit of parameters and names nothing.

use syn::visit::{self, Visit};
use syn::{FnArg, Signature, Type};

use super::diagnostic::Diagnostic;
use super::source::{SourceFile, SourcePackage};

/// The most tuple parameters that a crate may have; none where it is not named. A number only ever
/// falls.
const KNOWN: &[(&str, usize)] = &[];

/// The tuple parameters of a crate that has more of them than it may have.
pub(super) fn check(package: &SourcePackage) -> Vec<Diagnostic> {
    check_at_most(package, known(&package.name))
}

fn known(name: &str) -> usize {
    let entry = KNOWN.iter().find(|(known, _)| *known == name);
    entry.map_or(0, |(_, count)| *count)
}

fn check_at_most(package: &SourcePackage, limit: usize) -> Vec<Diagnostic> {
    let found: Vec<Diagnostic> = package.sources.iter().flat_map(in_file).collect();
    match found.len() {
        count if count > limit => found,
        count if count < limit => vec![Diagnostic::warning(
            &package.name,
            0,
            format!("{count} tuple parameters are left of {limit}: lower the number in KNOWN"),
        )],
        _ => Vec::new(),
    }
}

fn in_file(source: &SourceFile) -> Vec<Diagnostic> {
    let mut parameters = TupleParameters(Vec::new());
    parameters.visit_file(&source.syntax);
    let shipped = parameters.0.into_iter();
    let shipped = shipped.filter(|(_, line)| !source.is_test(*line));
    shipped
        .map(|(function, line)| {
            let message = format!("`{function}` takes a tuple; name its parts, or make it a type");
            Diagnostic::failure(&source.place, line, message)
        })
        .collect()
}

/// The functions with a tuple parameter, and the lines of these.
struct TupleParameters(Vec<(String, usize)>);

impl<'ast> Visit<'ast> for TupleParameters {
    fn visit_signature(&mut self, signature: &'ast Signature) {
        for input in &signature.inputs {
            let FnArg::Typed(parameter) = input else {
                continue;
            };
            if is_tuple(&parameter.ty) {
                let line = signature.ident.span().start().line;
                self.0.push((signature.ident.to_string(), line));
            }
        }
        visit::visit_signature(self, signature);
    }
}

/// Whether a type is a tuple or a reference to one; the empty tuple is none.
fn is_tuple(parameter: &Type) -> bool {
    match parameter {
        Type::Tuple(tuple) => !tuple.elems.is_empty(),
        Type::Reference(reference) => is_tuple(&reference.elem),
        Type::Paren(inner) => is_tuple(&inner.elem),
        Type::Verbatim(_) | _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str, limit: usize) -> Vec<String> {
        let source = SourceFile::parse("crates/engine/src/a.rs", "ostler-engine", text.to_owned());
        let package = SourcePackage {
            name: "ostler-engine".to_owned(),
            dir: "crates/engine".to_owned(),
            sources: vec![source.expect("Rust")],
        };
        let findings = check_at_most(&package, limit);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn tuples_are_found_in_parameters_of_functions_alone() {
        for text in [
            "fn f(a: u8, b: (u8, u8)) {}",
            "fn f((a, b): (u8, u8)) {}",
            "fn f(a: &mut (u8, u8)) {}",
            "impl A { fn f(&self, a: &(u8, u8)) {} }",
            "trait A { fn f(a: (u8,)); }",
        ] {
            assert_eq!(
                findings(text, 0),
                [
                    "failure: crates/engine/src/a.rs:1: `f` takes a tuple; name its parts, or make it a type"
                ],
                "{text}"
            );
        }
        for text in [
            "fn f(a: (), b: &mut (impl Read + Write)) -> (u8, u8) { (1, 2) }",
            "fn f() { let a = |(b, c): (u8, u8)| b + c; }",
            "fn f(a: Vec<(u8, u8)>, b: Path<(u8, u8)>) {}",
            "#[cfg(test)] mod tests { fn f(a: (u8, u8)) {} }",
        ] {
            assert_eq!(findings(text, 0), [""; 0], "{text}");
        }
    }

    #[test]
    fn known_ones_may_only_become_fewer() {
        let text = "fn f(a: (u8, u8)) {}";
        assert_eq!(findings(text, 1), [""; 0]);
        assert_eq!(findings(text, 2).len(), 1);
        assert!(findings(text, 2)[0].starts_with("warning: ostler-engine: 1 tuple"));
    }
}
