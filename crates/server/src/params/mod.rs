//! Parameters as data: one table per tool or route, from which its schema, its checks and its
//! error messages come.

mod arguments;
mod table;

pub(crate) use arguments::{Arguments, BadArguments, Port};
pub(crate) use table::{Kind, Parameter, schema};
