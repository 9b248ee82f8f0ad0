//! The public types of the model.

mod isolation;
mod parsing;
mod status;
mod text_forms;
