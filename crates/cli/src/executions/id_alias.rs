//! Aliases of ids: a prefix of an id, or `@last`.

use hyper::Method;
use ostler_api::{ExecutionBody, ExecutionsBody};
use ostler_model::id::IdRef;

use crate::client::{DaemonClient, RequestBody};
use crate::context::{CliContext, block_on};
use crate::error::CommandError;

/// The shortest prefix that is looked up, in characters.
const MIN_PREFIX_CHARS: usize = 4;
/// The most executions that are listed for an ambiguous prefix.
const CANDIDATES: &str = "10";
/// The most characters of a command in that list.
const COMMAND_CHARS: usize = 40;
/// The alias of the newest execution.
pub(crate) const LAST: &str = "@last";
/// The alias of the newest service.
pub(crate) const LAST_SERVICE: &str = "@last-service";
/// The allowed forms, for people.
pub(crate) const ID_HINT: &str = "an id has 8 characters; its first 4 or more, @last and \
    @last-service are taken too; `ostler ps -a` lists what there is";

/// Replaces an alias by the whole id.
///
/// # Errors
/// As [`resolve`].
pub(crate) fn resolve_in_place(
    context: &CliContext,
    word: &mut String,
) -> Result<(), CommandError> {
    if is_alias(word) {
        *word = block_on(resolve(&context.client(), word))?;
    }
    Ok(())
}

/// The id for a word; `word` itself where it is an id, or not a prefix of one.
///
/// # Errors
/// For an ambiguous prefix, and an unknown name after `@`.
pub(crate) async fn resolve(client: &DaemonClient, word: &str) -> Result<String, CommandError> {
    if !is_alias(word) {
        return Ok(word.to_owned());
    }
    match word {
        LAST => newest(client, word, &[("limit", "1")]).await,
        LAST_SERVICE => newest(client, word, &[("limit", "1"), ("service", "true")]).await,
        _ if word.starts_with('@') => {
            Err(CommandError::value(format!("'{word}' stands for nothing")).with_hint(ID_HINT))
        }
        _ => by_prefix(client, word).await,
    }
}

fn is_alias(word: &str) -> bool {
    let is_prefix = || word.len() >= MIN_PREFIX_CHARS && word.parse::<IdRef>().is_err();
    word.starts_with('@') || is_prefix()
}

async fn newest(
    client: &DaemonClient,
    word: &str,
    query: &[(&str, &str)],
) -> Result<String, CommandError> {
    let list = list_executions(client, query).await?;
    let newest = list.executions.into_iter().next().map(|info| info.id);
    newest.ok_or_else(|| {
        CommandError::new(
            ostler_model::ErrorCode::ProcessNotFound,
            format!("'{word}': there is none yet"),
        )
    })
}

async fn by_prefix(client: &DaemonClient, word: &str) -> Result<String, CommandError> {
    let list = list_executions(client, &[("id", word), ("limit", CANDIDATES)]).await?;
    match &list.executions[..] {
        [] => Ok(word.to_owned()),
        [info] => Ok(info.id.clone()),
        several => Err(ambiguous(word, several, list.total)),
    }
}

fn ambiguous(word: &str, several: &[ExecutionBody], total: Option<usize>) -> CommandError {
    let total = total.unwrap_or(several.len());
    let lines = several.iter().map(|info| {
        let command: String = info.command.chars().take(COMMAND_CHARS).collect();
        format!("\n{} ({command})", info.id)
    });
    let more = match total.saturating_sub(several.len()) {
        0 => String::new(),
        more => format!("\nand {more} more"),
    };
    CommandError::value(format!(
        "{total} ids begin with '{word}':{}{more}",
        lines.collect::<String>()
    ))
    .with_hint("write more of it")
}

/// Lists executions, newest first, as the daemon returns them.
///
/// # Errors
/// As the daemon responds.
pub(crate) async fn list_executions(
    client: &DaemonClient,
    query: &[(&str, &str)],
) -> Result<ExecutionsBody, CommandError> {
    let query = form_urlencoded::Serializer::new(String::from("/api/v1/executions?"))
        .extend_pairs(query)
        .finish();
    client.call(Method::GET, &query, RequestBody::None).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_ids_and_short_words_are_not_looked_up() {
        for word in [
            "k3v9x0qa",
            "k3v",
            "",
            "01a20436-34ce-713e-bce9-bef10252b5d8",
        ] {
            assert!(!is_alias(word), "{word}");
        }
        for word in ["k3v9", "k3v9x0q", "01a20436-34", "@last", "@x"] {
            assert!(is_alias(word), "{word}");
        }
    }
}
