//! An interaction, as these tools tell it.

use ostler_engine::Interaction;
use ostler_engine::interaction::Kind;
use ostler_model::Timestamp;
use serde::Serialize;

use crate::render::clamped;
use crate::render::clean;

/// The most characters of a message.
const MESSAGE_CHARS: usize = 2_000;
/// The most characters of one option.
const OPTION_CHARS: usize = 200;
/// The most options told; each can be chosen by its number, told or not.
const OPTIONS: usize = 20;

/// One question. A secret one has neither default nor options.
#[derive(Debug, Serialize)]
pub(super) struct Open {
    id: String,
    kind: Kind,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    options_omitted: usize,
    default: Option<String>,
    /// Present where the answer must not go through these tools.
    #[serde(skip_serializing_if = "is_false")]
    secret: bool,
    created: Timestamp,
    expires: Timestamp,
    /// The process that waits for the answer.
    execution: Option<String>,
}

impl From<&Interaction> for Open {
    fn from(interaction: &Interaction) -> Self {
        let question = &interaction.question;
        let told = question.options.iter().take(OPTIONS);
        let default = question.default.as_deref();
        Self {
            id: interaction.id.to_string(),
            kind: question.kind,
            message: shown(&question.message, MESSAGE_CHARS),
            options: told.map(|option| shown(option, OPTION_CHARS)).collect(),
            options_omitted: question.options.len().saturating_sub(OPTIONS),
            default: default.map(|default| shown(default, OPTION_CHARS)),
            secret: question.secret,
            created: interaction.created_at,
            expires: interaction.expires_at,
            execution: question.execution.map(|id| id.short()),
        }
    }
}

/// Text of a command, without what controls a terminal.
fn shown(text: &str, chars: usize) -> String {
    let lines: Vec<_> = text.lines().map(clean).collect();
    clamped(&lines.join("\n"), chars)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
