//! Tables of query parameters, as OpenAPI has them.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use syn::{BinOp, Expr, ExprCall, ExprMethodCall, Lit, UnOp};

use super::rust_items::RustItems;

/// Constants of Rust's library and of other crates that stand in tables.
const NUMBERS: &[(&str, i64)] = &[("MAX", i64::MAX), ("MIN", i64::MIN)];

/// The parameters of a table: `&[Parameter]`, or the name of a constant of this type.
pub(super) fn query_parameters(items: &RustItems, place: &str, table: &Expr) -> Result<Vec<Value>> {
    let (place, list) = list(items, place, table)?;
    list.iter()
        .map(|entry| parameter(items, place, entry))
        .collect()
}

/// The texts of a list of them.
pub(super) fn texts(items: &RustItems, place: &str, list_of: &Expr) -> Result<Vec<String>> {
    let (place, list) = list(items, place, list_of)?;
    list.iter().map(|it| text(items, place, it)).collect()
}

fn list<'a>(
    items: &'a RustItems,
    place: &'a str,
    table: &'a Expr,
) -> Result<(&'a str, Vec<&'a Expr>)> {
    match table {
        Expr::Reference(it) => list(items, place, &it.expr),
        Expr::Array(it) => Ok((place, it.elems.iter().collect())),
        Expr::Path(_) => {
            let (place, value) = items.constant(place, &last_name(table)?)?;
            list(items, place, value)
        }
        Expr::Verbatim(_) | _ => bail!("{place}: a table must be a list, or a constant"),
    }
}

fn parameter(items: &RustItems, place: &str, entry: &Expr) -> Result<Value> {
    match entry {
        Expr::Path(_) => {
            let (place, value) = items.constant(place, &last_name(entry)?)?;
            parameter(items, place, value)
        }
        Expr::MethodCall(it) => with_default(items, place, it),
        Expr::Call(it) => new_parameter(items, place, it),
        Expr::Index(it) => {
            let (place, list) = list(items, place, &it.expr)?;
            let index = usize::try_from(number(items, place, &it.index)?)?;
            let entry = list.get(index);
            parameter(
                items,
                place,
                entry.with_context(|| format!("{place}: no entry {index}"))?,
            )
        }
        Expr::Verbatim(_) | _ => bail!("{place}: an entry of a table is not understood"),
    }
}

fn with_default(items: &RustItems, place: &str, call: &ExprMethodCall) -> Result<Value> {
    let mut made = parameter(items, place, &call.receiver)?;
    let method = call.method.to_string();
    let given = call.args.first();
    let given = given.with_context(|| format!("{place}: {method} without an argument"))?;
    match method.as_str() {
        "with_default" => made["schema"]["default"] = number(items, place, given)?.into(),
        "with_default_text" => made["schema"]["default"] = text(items, place, given)?.into(),
        "with_default_flag" => {
            let Expr::Lit(literal) = given else {
                bail!("{place}: with_default_flag takes true or false");
            };
            let Lit::Bool(flag) = &literal.lit else {
                bail!("{place}: with_default_flag takes true or false");
            };
            made["schema"]["default"] = flag.value.into();
        }
        "with_description" => made["description"] = text(items, place, given)?.into(),
        other => bail!("{place}: the method {other} of a parameter is not understood"),
    }
    Ok(made)
}

fn new_parameter(items: &RustItems, place: &str, call: &ExprCall) -> Result<Value> {
    let required = match last_name(&call.func)?.as_str() {
        "required" => true,
        "optional" => false,
        other => bail!("{place}: Parameter::{other} is not understood"),
    };
    let arguments: Vec<&Expr> = call.args.iter().collect();
    let [name, kind, description] = arguments[..] else {
        bail!("{place}: a parameter has a name, a kind and a description");
    };
    let name = text(items, place, name)?;
    let schema = kind_schema(items, place, kind).with_context(|| format!("parameter '{name}'"))?;
    Ok(json!({
        "name": name, "in": "query", "required": required, "schema": schema,
        "description": text(items, place, description)?,
    }))
}

/// The schema of a `ParameterKind`. A list is given as several parameters of the same name.
fn kind_schema(items: &RustItems, place: &str, kind: &Expr) -> Result<Value> {
    if let Expr::Path(_) = kind {
        return Ok(match last_name(kind)?.as_str() {
            "Text" => json!({"type": "string"}),
            "Flag" => json!({"type": "boolean"}),
            "List" => json!({"type": "array", "items": {"type": "string"}}),
            other => {
                let named = items.constant(place, other);
                let (place, kind) =
                    named.with_context(|| format!("ParameterKind::{other} is not for queries"))?;
                return kind_schema(items, place, kind);
            }
        });
    }
    let Expr::Call(call) = kind else {
        bail!("{place}: the kind of a parameter is not understood");
    };
    let arguments: Vec<&Expr> = call.args.iter().collect();
    match (last_name(&call.func)?.as_str(), &arguments[..]) {
        ("Choice", [words]) => Ok(json!({"type": "string", "enum": texts(items, place, words)?})),
        ("Integer" | "Clamped", [least, most]) => Ok(json!({
            "type": "integer",
            "minimum": number(items, place, least)?,
            "maximum": number(items, place, most)?,
        })),
        (other, _) => bail!("{place}: ParameterKind::{other} is not for queries"),
    }
}

fn text(items: &RustItems, place: &str, value: &Expr) -> Result<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Ok(text.value()),
            Lit::Verbatim(_) | _ => bail!("{place}: a text is expected"),
        },
        Expr::Path(_) => {
            let (place, value) = items.constant(place, &last_name(value)?)?;
            text(items, place, value)
        }
        Expr::Verbatim(_) | _ => bail!("{place}: a text is expected"),
    }
}

fn number(items: &RustItems, place: &str, value: &Expr) -> Result<i64> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => Ok(number.base10_parse()?),
            Lit::Verbatim(_) | _ => bail!("{place}: a number is expected"),
        },
        Expr::Unary(it) if matches!(it.op, UnOp::Neg(_)) => Ok(-number(items, place, &it.expr)?),
        // `cast_signed` of a small number.
        Expr::MethodCall(it) => number(items, place, &it.receiver),
        Expr::Cast(it) => number(items, place, &it.expr),
        Expr::Binary(it) if matches!(it.op, BinOp::Mul(_)) => {
            Ok(number(items, place, &it.left)? * number(items, place, &it.right)?)
        }
        Expr::Path(_) => {
            let name = last_name(value)?;
            if let Some((_, number)) = NUMBERS.iter().find(|(known, _)| *known == name) {
                return Ok(*number);
            }
            let (place, value) = items.constant(place, &name)?;
            number(items, place, value)
        }
        Expr::Verbatim(_) | _ => bail!("{place}: a number is expected"),
    }
}

/// The last name of a path.
pub(super) fn last_name(path: &Expr) -> Result<String> {
    let Expr::Path(path) = path else {
        bail!("a name is expected");
    };
    let last = path.path.segments.last().context("a name is expected")?;
    Ok(last.ident.to_string())
}
