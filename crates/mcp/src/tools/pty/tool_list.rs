//! The tools of profile `pty`.

use super::{pty_close, pty_list, pty_read, pty_resize, pty_run, pty_start, pty_write};
use crate::tools::registry::ToolDefinition;

/// In the order of `tools/list`.
pub(in crate::tools) const TOOLS: &[&ToolDefinition] = &[
    &pty_start::DEFINITION,
    &pty_run::DEFINITION,
    &pty_write::DEFINITION,
    &pty_read::DEFINITION,
    &pty_resize::DEFINITION,
    &pty_list::DEFINITION,
    &pty_close::DEFINITION,
];
