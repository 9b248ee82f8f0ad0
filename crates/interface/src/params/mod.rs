//! Parameters as data: one table per tool or route, which determines its schema, its validation and
//! its error messages.

mod arguments;
mod names;
mod parameter;

pub use arguments::{Arguments, ArgumentsError, CommandArgument, PortArgument};
pub use parameter::{Parameter, ParameterKind, ParameterLocation, object_schema};
