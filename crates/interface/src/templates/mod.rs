//! Command templates: their files, and the starts that are made from them.

mod files;
mod start;
mod values;

pub use files::{DIRECTORY, TemplateFiles};
pub use start::{find_template, template_command};
pub use values::parameter_values;
