//! Parameters as data: one table per tool or route, from which its schema, its checks and its
//! error messages come.

mod arguments;
mod names;
mod table;

pub(crate) use arguments::{Arguments, BadArguments, CommandArgument, Port};
#[cfg(test)]
pub(crate) use table::ParameterPlace;
pub(crate) use table::{Kind, Parameter, schema};
