//! What a handler calls, itself and through other functions of the routes: what it can answer follows
//! from that.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprCall, ExprMethodCall, FnArg, ItemFn, Macro, Member, Type};

use super::rust_items::{REST, RustItems};

/// The name of the engine, as a variable or a field.
const ENGINE: &str = "engine";
/// The method of an upgrade whose argument runs once the answer is sent.
const UPGRADE: &str = "accept";
/// The type whose variants are error codes.
const ERROR_CODE: &str = "ErrorCode";

/// What a handler uses that decides its errors.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HandlerCalls {
    /// Methods of the engine.
    pub(super) engine: BTreeSet<String>,
    /// Functions and methods of anything else.
    pub(super) others: BTreeSet<String>,
    /// Error codes that are named: variants of `ErrorCode`.
    pub(super) codes: BTreeSet<String>,
    /// The types of its arguments, which are extractors.
    pub(super) extractors: BTreeSet<String>,
}

impl HandlerCalls {
    /// Those of a handler in this file.
    pub(super) fn of(items: &RustItems, place: &str, handler: &ItemFn) -> Self {
        let mut calls = Self {
            extractors: handler.sig.inputs.iter().filter_map(type_name).collect(),
            ..Self::default()
        };
        let mut visited = BTreeSet::new();
        calls.add(items, place, &handler.block, &mut visited);
        calls
    }

    fn add(
        &mut self,
        items: &RustItems,
        place: &str,
        body: &Block,
        visited: &mut BTreeSet<*const Block>,
    ) {
        if !visited.insert(std::ptr::from_ref(body)) {
            return;
        }
        let mut visitor = CallVisitor::default();
        visitor.visit_block(body);
        self.engine.extend(visitor.engine);
        self.codes.extend(visitor.codes);
        for path in visitor.functions {
            if let Some((place, body)) = resolve(items, place, &path) {
                self.add(items, place, body, visited);
            }
            self.others.extend(path.last().cloned());
        }
    }
}

/// The body of the function of the routes that a path means in a file: one of its own, of the module
/// or the type that the path names, or an imported one of this name.
fn resolve<'a>(items: &'a RustItems, place: &str, path: &[String]) -> Option<(&'a str, &'a Block)> {
    let (name, modules) = path.split_last()?;
    let all: Vec<(&str, &Block)> = items
        .functions()
        .filter(|(at, function)| at.starts_with(REST) && function.sig.ident == name)
        .map(|(at, function)| (at, &*function.block))
        .collect();
    let Some(module) = modules.last() else {
        let own = all.iter().find(|(at, _)| *at == place);
        let only = all.first().filter(|_| all.len() == 1);
        return own.or(only).copied();
    };
    let file = format!("/{module}.rs");
    let of_module = all.iter().find(|(at, _)| at.ends_with(&file)).copied();
    of_module.or_else(|| {
        let mut methods = items.methods(module, name);
        methods.find(|(at, _)| at.starts_with(REST))
    })
}

fn type_name(argument: &FnArg) -> Option<String> {
    match argument {
        FnArg::Typed(argument) => match &*argument.ty {
            Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
            Type::Verbatim(_) | _ => None,
        },
        FnArg::Receiver(_) => None,
    }
}

/// Whether it is the engine: a variable or a field of that name.
fn is_engine(receiver: &Expr) -> bool {
    match receiver {
        Expr::Path(path) => path.path.is_ident(ENGINE),
        Expr::Field(field) => match &field.member {
            Member::Named(name) => name == ENGINE,
            Member::Unnamed(_) => false,
        },
        Expr::Verbatim(_) | _ => false,
    }
}

#[derive(Debug, Default)]
struct CallVisitor {
    engine: BTreeSet<String>,
    codes: BTreeSet<String>,
    functions: BTreeSet<Vec<String>>,
}

impl<'ast> Visit<'ast> for CallVisitor {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let method = call.method.to_string();
        if method == UPGRADE {
            return;
        }
        if is_engine(&call.receiver) {
            self.engine.insert(method);
        } else {
            self.functions.insert(vec!["_".to_owned(), method]);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func {
            let names = path.path.segments.iter().map(|it| it.ident.to_string());
            self.functions.insert(names.collect());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments = path.segments.iter().rev();
        if let (Some(variant), Some(name)) = (segments.next(), segments.next())
            && name.ident == ERROR_CODE
        {
            self.codes.insert(variant.ident.to_string());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.scan(called.tokens.clone());
    }
}

impl CallVisitor {
    /// What is written in a macro such as `select!`, whose syntax is its own.
    fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            let TokenTree::Group(group) = token else {
                continue;
            };
            self.scan(group.stream());
            let before = |distance: usize| match tokens.get(index.checked_sub(distance)?)? {
                TokenTree::Ident(ident) => Some(ident.to_string()),
                TokenTree::Punct(punct) => Some(punct.as_char().to_string()),
                TokenTree::Group(_) | TokenTree::Literal(_) => None,
            };
            if group.delimiter() != Delimiter::Parenthesis {
                continue;
            }
            let Some(name) = before(1) else {
                continue;
            };
            let is_of_engine =
                before(2).as_deref() == Some(".") && before(3).as_deref() == Some(ENGINE);
            if is_of_engine {
                self.engine.insert(name);
            } else {
                self.functions.insert(vec![name]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(set: &BTreeSet<String>) -> Vec<&str> {
        set.iter().map(String::as_str).collect()
    }

    #[test]
    fn calls_are_found_through_functions_and_in_macros() {
        let items = RustItems::of(&[
            (
                "crates/http/src/rest/a.rs",
                "async fn handler(State(s): State<S>, PathId(id): PathId) {
                    s.engine.info(&id);
                    helper(&s);
                    b::other();
                    imported();
                    T::made();
                    upgrade.accept(move || s.engine.after());
                    tokio::select! { x = s.engine.wait(id) => x, () = gone() => {} }
                }
                fn helper(s: &S) { s.engine.list(); helper(s); ErrorCode::Storage }",
            ),
            (
                "crates/http/src/rest/b.rs",
                "fn other() { engine.stop() } fn helper() { engine.never() } fn imported() { engine.start() }
                 struct T; impl T { fn made() { engine.write() } }",
            ),
        ]);
        let items = items.unwrap();
        let (place, handler) = items.handler("a", "handler").unwrap();
        let calls = HandlerCalls::of(&items, place, handler);
        let engine = ["info", "list", "start", "stop", "wait", "write"];
        assert_eq!(names(&calls.engine), engine);
        assert_eq!(names(&calls.codes), ["Storage"]);
        assert_eq!(names(&calls.extractors), ["PathId", "State"]);
        assert!(calls.others.contains("gone"));
    }
}
