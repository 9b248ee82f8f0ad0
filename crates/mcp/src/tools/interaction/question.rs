//! An interaction as the tools show it.

use ostler_engine::Interaction;
use ostler_engine::interaction::QuestionKind;
use ostler_model::Timestamp;
use serde::Serialize;

use ostler_render::clean;
use ostler_render::truncated;

/// The most characters of a message.
const MESSAGE_CHARS: usize = 2_000;
/// The most characters of one option.
const OPTION_CHARS: usize = 200;
/// The most options shown; every option can be chosen by its number.
const MAX_OPTIONS: usize = 20;

/// One question. A secret has neither default nor options.
#[derive(Debug, Serialize)]
pub(super) struct OpenQuestion {
    id: String,
    kind: QuestionKind,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    options_omitted: usize,
    default: Option<String>,
    /// Set where the answer must not pass through these tools.
    #[serde(skip_serializing_if = "is_false")]
    secret: bool,
    created: Timestamp,
    expires: Timestamp,
    /// The process that waits for the answer.
    execution: Option<String>,
}

impl From<&Interaction> for OpenQuestion {
    fn from(interaction: &Interaction) -> Self {
        let question = &interaction.question;
        let options = question.options.iter().take(MAX_OPTIONS);
        let default = question.default.as_deref();
        Self {
            id: interaction.id.to_string(),
            kind: question.kind,
            message: clean_and_truncate(&question.message, MESSAGE_CHARS),
            options: options
                .map(|option| clean_and_truncate(option, OPTION_CHARS))
                .collect(),
            options_omitted: question.options.len().saturating_sub(MAX_OPTIONS),
            default: default.map(|default| clean_and_truncate(default, OPTION_CHARS)),
            secret: question.secret,
            created: interaction.created_at,
            expires: interaction.expires_at,
            execution: question.execution.map(|id| id.short()),
        }
    }
}

/// Text of a command, without control characters.
fn clean_and_truncate(text: &str, chars: usize) -> String {
    let lines: Vec<_> = text.lines().map(clean).collect();
    truncated(&lines.join("\n"), chars)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
