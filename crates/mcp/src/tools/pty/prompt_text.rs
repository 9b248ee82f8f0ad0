//! What a session waits for, as text and as JSON.

use ostler_engine::Prompt;
use ostler_render::{clean, truncated};
use serde_json::{Value, json};

use super::family::ToolFamily;

/// The most characters of a prompt, a directory, a name or a note.
const CLAUSE_CHARS: usize = 300;

/// A shell that waits for a command.
pub(super) fn shell_prompt_text(status: Option<i32>, cwd: Option<&str>) -> String {
    let mut text_line = "[the shell waits for a command".to_owned();
    if let Some(status) = status {
        text_line.push_str(&format!("; the last one exited {status}"));
    }
    if let Some(cwd) = cwd {
        text_line.push_str(&format!("; cwd {}", clip(cwd)));
    }
    text_line.push(']');
    text_line
}

/// A prompt, and how to answer it. A secret is for a person to type: what an agent types stays in
/// its context.
pub(super) fn prompt_text(id: &str, family: ToolFamily, prompt: &Prompt) -> String {
    let text = clean(&prompt.text);
    let text = clip(text.trim());
    if prompt.secret {
        return format!(
            "[it asks for a secret{}; never make one up: a person can type it, unseen by you, \
             with: ostler attach {id}]",
            with_colon(&text)
        );
    }
    let mut line = format!("[it waits for input{}", with_colon(&text));
    if !prompt.options.is_empty() {
        line.push_str(&format!("; options: {}", clip(&prompt.options.join(", "))));
    }
    if let Some(default) = &prompt.default {
        line.push_str(&format!("; default: {}", clip(default)));
    }
    format!("{line}; {}]", family.how_to_answer(id))
}

fn with_colon(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}

/// A prompt as JSON.
pub(super) fn prompt_fields(prompt: &Prompt) -> Value {
    json!({
        "text": clip(clean(&prompt.text).trim()),
        "secret": prompt.secret,
        "options": prompt.options,
        "default": prompt.default,
    })
}

/// Text cut to a maximum, as a program or a caller may have made it huge.
pub(super) fn clip(text: &str) -> String {
    truncated(text, CLAUSE_CHARS)
}
