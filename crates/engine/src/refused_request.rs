//! Refused requests in the audit log that are no starts to the engine: what an interface refuses
//! itself, and contexts.

use ostler_model::{ByteString, Caller, Command, Owner};

use crate::engine_inner::LedgerDetail;
use crate::request::ClientKind;

/// The longest command line in the ledger, in characters.
pub(crate) const COMMAND_CHARS: usize = 4_096;
/// The longest other text about a refused request, in characters.
const TEXT_CHARS: usize = 1_024;

/// A request that was refused before it became a start, as far as it is known by then.
#[derive(Debug, Clone, Default)]
pub struct RefusedRequest {
    /// What was requested: a route with its method, or a tool.
    pub request: String,
    /// The API surface that it came from, where that is known.
    pub client_kind: Option<ClientKind>,
    /// What was to run.
    pub command: Option<Command>,
    /// The directory that it names.
    pub cwd: Option<ByteString>,
    /// The id of the command template that it names.
    pub template: Option<String>,
    /// The project that it names, which its entry belongs to, as if it had been started; none where
    /// that is the project of its caller.
    pub project: Option<String>,
}

impl RefusedRequest {
    /// A request of which no more is known than what it is.
    #[must_use]
    pub fn new(request: impl Into<String>) -> Self {
        Self {
            request: request.into(),
            ..Self::default()
        }
    }

    /// Whom its entry in the ledger belongs to.
    pub(crate) fn owner(&self, caller: &Caller) -> Owner {
        let mut owner = caller.owner.clone();
        if let Some(project) = &self.project {
            owner.project = Some(shortened(project, TEXT_CHARS));
        }
        owner
    }

    /// The fields of that entry, under the names that those of starts have.
    pub(crate) fn into_detail(self) -> LedgerDetail {
        let command = self
            .command
            .map(|it| shortened(&it.display(), COMMAND_CHARS));
        let texts = [
            ("request", Some(self.request)),
            ("cwd", self.cwd.map(|it| it.to_string())),
        ];
        let texts = texts
            .into_iter()
            .map(|(name, text)| (name, text.map(|it| shortened(&it, TEXT_CHARS))));
        let face = self.client_kind.map(|it| it.as_str().to_owned());
        let template = self.template.map(|id| {
            let id = shortened(&id, TEXT_CHARS);
            serde_json::json!({ "id": id, "parameters": {} })
        });
        let texts = texts.chain([("command", command), ("face", face)]);
        let texts = texts.map(|(name, text)| (name, text.map(serde_json::Value::from)));
        texts
            .chain([("template", template)])
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}

fn shortened(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_holds_what_is_known_and_no_more_than_fits() {
        let unknown = RefusedRequest::new("POST /api/v1/executions").into_detail();
        assert_eq!(
            serde_json::json!(unknown),
            serde_json::json!({ "request": "POST /api/v1/executions" })
        );
        let known = RefusedRequest {
            client_kind: Some(ClientKind::Rest),
            command: Some(Command::Argv {
                program: "x".repeat(COMMAND_CHARS + 1).into(),
                args: Vec::new(),
            }),
            template: Some("t".repeat(TEXT_CHARS + 1)),
            ..RefusedRequest::new("r")
        };
        let known = serde_json::json!(known.into_detail());
        assert_eq!(known["face"], "rest");
        assert_eq!(known["command"].as_str().map(str::len), Some(COMMAND_CHARS));
        let template = known["template"]["id"].as_str();
        assert_eq!(template.map(str::len), Some(TEXT_CHARS));
        assert!(known.get("cwd").is_none());
    }
}
