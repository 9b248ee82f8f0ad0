//! Parameters as data: one table per tool or route, which determines its schema, its validation and
//! its error messages.

mod arguments;
mod names;
mod parameter;

pub(crate) use arguments::{Arguments, ArgumentsError, CommandArgument, PortArgument};
#[cfg(test)]
pub(crate) use parameter::ParameterLocation;
pub(crate) use parameter::{Parameter, ParameterKind, object_schema};
