//! Options of the MCP interface.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ostler_interface::templates::TemplateFiles;

/// A call that still runs after this long becomes a task, where the client knows tasks.
pub const TASK_AFTER_MS: u64 = 5_000;

/// Options of the MCP interface.
#[derive(Debug, Clone)]
pub struct McpOptions {
    /// Which tools return structured content.
    pub structured: Structured,
    /// When long calls become tasks; none means never.
    pub task_after: Option<Duration>,
    /// Where definition files of command templates are looked for.
    pub templates: TemplateFiles,
    /// The MCP App, where there may be one.
    pub app: Option<Arc<dyn AppPage>>,
}

/// The page of the MCP App.
pub trait AppPage: fmt::Debug + Send + Sync {
    /// Whether there is one.
    fn is_there(&self) -> bool;

    /// The page, one file of HTML; none where it cannot be read.
    fn html(&self) -> Option<String>;
}

/// Which tools return structured content. Clients that receive it often show the model nothing
/// else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Structured {
    /// Status tools, not those that return output.
    #[default]
    Auto,
    /// Every tool.
    Always,
    /// No tool.
    Never,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            structured: Structured::default(),
            task_after: Some(Duration::from_millis(TASK_AFTER_MS)),
            templates: TemplateFiles::default(),
            app: None,
        }
    }
}
