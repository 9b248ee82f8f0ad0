//! Texts that depend on the tool family: two families use terminals.

use ostler_engine::ExecutionInfo;
use ostler_model::Cursor;

use crate::tools::execution::execution_reply;

/// The tool family of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum ToolFamily {
    /// The `pty_` tools.
    Pty,
    /// `exec`, `process`, `process_control`.
    Core,
}

impl ToolFamily {
    /// Describes the output an answer shows.
    pub(super) fn output_range(self, from: u64, to: u64) -> String {
        match self {
            Self::Pty => format!(" | output {from} to {to}"),
            Self::Core => {
                let cursor = Cursor {
                    offset: to,
                    event: 0,
                };
                format!(" | cursor {cursor}")
            }
        }
    }

    /// The run time in the first line, as `exec` has it.
    pub(super) fn time_text(self, info: &ExecutionInfo) -> String {
        let time = || execution_reply::format_time(info);
        match (self, info.state.is_finished()) {
            (Self::Pty, _) => String::new(),
            (Self::Core, true) => format!(", {}", time()),
            (Self::Core, false) => format!(" {}", time()),
        }
    }

    /// How to answer a question.
    pub(super) fn how_to_answer(self, id: &str) -> String {
        match self {
            Self::Pty => format!("answer: pty_write {{\"session\":\"{id}\",\"text\":\"…\"}}"),
            Self::Core => "answer: process_control write".to_owned(),
        }
    }

    /// How to wait on a program that prints nothing.
    pub(super) fn how_to_wait(self, id: &str) -> String {
        match self {
            Self::Pty => format!("pty_read {{\"session\":\"{id}\",\"until\":\"prompt\"}}"),
            Self::Core => "process wait".to_owned(),
        }
    }

    /// How to read what an answer omitted.
    pub(super) const fn how_to_read_omitted(self) -> &'static str {
        match self {
            Self::Pty => "what was left out: pty_read with view \"text\" and its offset",
            Self::Core => "what was left out: process output with its offset as cursor",
        }
    }

    /// How to read the page after this one.
    pub(super) fn how_to_read_on(self, next: u64) -> String {
        match self {
            Self::Pty => format!("more: pty_read with view \"text\" and offset {next}"),
            Self::Core => format!("more: process output with cursor \"{next}.0\""),
        }
    }

    /// The text of a wait that timed out.
    pub(super) const fn timed_out_text(self) -> &'static str {
        match self {
            Self::Pty => "[the wait was over before that; pty_read looks again]",
            Self::Core => "[the wait was over before that; process screen looks again]",
        }
    }

    /// The hint for a shell that expects more of a command.
    pub(super) const fn incomplete_text(self) -> &'static str {
        match self {
            Self::Pty => {
                "[the shell waits for the rest of the command (an open quote, a here-document, a \
                 block): pty_write it, or keys [\"ctrl-c\"]]"
            }
            Self::Core => "[the shell waits for the rest of the command, or keys [\"ctrl-c\"]]",
        }
    }
}
