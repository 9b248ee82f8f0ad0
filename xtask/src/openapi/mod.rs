//! `docs/openapi.json`: the REST API as an OpenAPI 3.1 document, made from the source: the table
//! of routes, the signatures and parameter tables of the handlers, and the types of the bodies with
//! their serde attributes and documentation.

mod calls;
mod command;
mod doc_text;
mod document;
mod json_text;
mod operations;
mod parameters;
mod problems;
mod responses;
mod routes;
mod rust_items;
mod schema_forms;
mod schemas;
mod serde_attributes;
#[cfg(test)]
mod tests;

pub(crate) use command::{OpenApiArgs, PATH, check, run};
