//! Parameters as data: one table per tool or route, from which its schema, its checks and its
//! error messages come.

mod arguments;
mod names;
mod table;

pub(crate) use arguments::{Arguments, BadArguments, Port, Run};
#[cfg(test)]
pub(crate) use table::Place;
pub(crate) use table::{Kind, Parameter, schema};
