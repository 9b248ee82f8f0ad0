//! Command templates: definitions of commands whose arguments have named parameters. Pure: knows
//! nothing of files, clocks, processes or async runtimes.
//!
//! [`TemplateCatalog::from_sources`] takes the texts of definition files,
//! [`CommandTemplate::command`] the values of parameters. One placeholder is one argument or a part
//! of one: no value adds, splits or removes an argument, and no shell is in between.
#![forbid(unsafe_code)]

mod argument;
mod catalog;
mod command;
mod definition;
mod definition_file;
mod source;
mod value;

pub use argument::ArgumentTemplate;
pub use catalog::{CatalogEntry, TemplateCatalog};
pub use command::{InvalidParameters, TemplateCommand};
pub use definition::{
    CommandTemplate, ParameterType, TemplateParameter, TemplatePermission, UnknownPermission,
};
pub use definition_file::{FILE_BYTES, TemplateProblem, parse_templates};
pub use source::{TemplateSource, TemplateTier};
