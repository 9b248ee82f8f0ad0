//! Parameters as data: one table per tool or route, from which its schema, its checks and its
//! error messages come.

mod arguments;
mod names;
mod parameter;

pub(crate) use arguments::{Arguments, ArgumentsError, CommandArgument, PortArgument};
#[cfg(test)]
pub(crate) use parameter::ParameterLocation;
pub(crate) use parameter::{Parameter, ParameterKind, object_schema};
