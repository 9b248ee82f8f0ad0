//! The table of routes: `crates/http/src/rest/routes.rs`.

use anyhow::{Context, Result, bail};
use syn::{Expr, ExprMethodCall, Lit, Stmt};

use super::parameters::last_name;
use super::rust_items::{REST, RustItems};

/// The function that makes the router.
const ROUTER: &str = "router";
/// The variable of a router whose routes are other names of documented ones.
const UNDOCUMENTED: &str = "undocumented";
/// Calls that add no routes.
const WITHOUT_ROUTES: [&str; 5] = [
    "fallback",
    "method_not_allowed_fallback",
    "layer",
    "route_layer",
    "with_state",
];

/// One method of one route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// In lower case, as in documents.
    pub(super) method: String,
    /// With parameters as `{name}`.
    pub(super) path: String,
    /// The module and the function that answer.
    pub(super) module: String,
    pub(super) handler: String,
}

/// Every route, in the order of the table.
pub(super) fn routes(items: &RustItems) -> Result<Vec<Route>> {
    of_function(items, &format!("{REST}/routes.rs"), ROUTER)
}

fn of_function(items: &RustItems, place: &str, name: &str) -> Result<Vec<Route>> {
    let function = items.function(place, name)?;
    match function.block.stmts.last() {
        Some(Stmt::Expr(router, None)) => of_router(items, place, router),
        _ => bail!("{place}: {name} must end with a router"),
    }
}

fn of_router(items: &RustItems, place: &str, router: &Expr) -> Result<Vec<Route>> {
    match router {
        Expr::Call(call) => match last_name(&call.func)?.as_str() {
            "new" => Ok(Vec::new()),
            name => of_function(items, place, name),
        },
        Expr::MethodCall(call) => of_call(items, place, call),
        Expr::Path(variable) if variable.path.is_ident(UNDOCUMENTED) => Ok(Vec::new()),
        Expr::Verbatim(_) | _ => bail!("{place}: a router is a chain of calls"),
    }
}

fn of_call(items: &RustItems, place: &str, call: &ExprMethodCall) -> Result<Vec<Route>> {
    let mut routes = of_router(items, place, &call.receiver)?;
    let arguments: Vec<&Expr> = call.args.iter().collect();
    match (call.method.to_string().as_str(), &arguments[..]) {
        ("merge", [other]) => routes.extend(of_router(items, place, other)?),
        ("nest", [prefix, inner]) => {
            let prefix = literal(prefix)?;
            let nested = of_router(items, place, inner)?.into_iter();
            routes.extend(nested.map(|route| Route {
                path: format!("{prefix}{}", route.path),
                ..route
            }));
        }
        ("route", [path, methods]) => of_methods(&literal(path)?, methods, &mut routes)?,
        (other, _) if WITHOUT_ROUTES.contains(&other) => {}
        (other, _) => bail!("{place}: the call of {other} is not understood"),
    }
    Ok(routes)
}

/// `get(module::handler).post(…)`.
fn of_methods(path: &str, methods: &Expr, routes: &mut Vec<Route>) -> Result<()> {
    let (method, arguments) = match methods {
        Expr::Call(call) => (last_name(&call.func)?, &call.args),
        Expr::MethodCall(call) => {
            of_methods(path, &call.receiver, routes)?;
            (call.method.to_string(), &call.args)
        }
        Expr::Verbatim(_) | _ => bail!("{path}: the methods of a route are calls"),
    };
    let handler = arguments.first();
    let Some(Expr::Path(handler)) = handler else {
        bail!("{path}: the handler of a route is a function");
    };
    let mut names = handler.path.segments.iter().rev();
    let (handler, module) = (names.next(), names.next());
    let module = module.with_context(|| format!("{path}: a handler without its module"))?;
    let handler = handler.with_context(|| format!("{path}: no handler"))?;
    routes.push(Route {
        method,
        path: path.to_owned(),
        module: module.ident.to_string(),
        handler: handler.ident.to_string(),
    });
    Ok(())
}

fn literal(value: &Expr) -> Result<String> {
    if let Expr::Lit(literal) = value
        && let Lit::Str(text) = &literal.lit
    {
        return Ok(text.value());
    }
    bail!("the path of a route is a literal")
}
