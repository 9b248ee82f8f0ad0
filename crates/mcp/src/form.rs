//! Converts a question to a form, and a submitted form to an answer.

use std::collections::BTreeMap;

use ostler_engine::interaction::{Question, QuestionKind};
use ostler_engine::{Interaction, InteractionId};
use ostler_model::visible_lines;
use rmcp::model::{
    BooleanSchema, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, EnumSchema, InputRequest, InputRequests, PrimitiveSchemaDefinition,
    StringSchema,
};
use serde_json::Value;

use ostler_render::truncated;

/// The name of the only field of each form.
const FIELD: &str = "answer";
/// The most characters of a command in a form.
const COMMAND_CHARS: usize = 80;

/// The result of showing a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FormReply {
    /// A valid answer.
    Value(String),
    /// Content that does not answer the question.
    Invalid,
    /// The person declined to answer.
    Declined,
    /// The person closed the form without an answer.
    Dismissed,
}

/// A question with its context for the person who reads the form.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElicitForm<'a> {
    pub(super) question: &'a Question,
    /// The command that asks.
    pub(super) command: Option<&'a str>,
    /// The problem with the previous answer.
    pub(super) complaint: Option<&'a str>,
}

impl ElicitForm<'_> {
    /// The parameters of `elicitation/create`.
    pub(super) fn elicit_params(self) -> ElicitRequestParams {
        let fields = BTreeMap::from([(FIELD.to_owned(), answer_schema(self.question))]);
        let schema = ElicitationSchema::new(fields).with_required(vec![FIELD.to_owned()]);
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.message(),
            requested_schema: schema,
        }
    }

    /// The form as part of a result (MCP revision 2026-07-28), keyed by the interaction's id.
    pub(super) fn input_requests(self, id: InteractionId) -> InputRequests {
        let request = InputRequest::Elicitation(ElicitRequest::new(self.elicit_params()));
        BTreeMap::from([(id.to_string(), request)])
    }

    fn message(self) -> String {
        let question = self.question;
        let mut message = match (self.command, question.execution) {
            (Some(command), Some(id)) => format!(
                "{} (process {}) asks:\n{}",
                truncated(command, COMMAND_CHARS),
                id.short(),
                question.message
            ),
            (Some(_) | None, None) | (None, Some(_)) => question.message.clone(),
        };
        if let Some(complaint) = self.complaint {
            message.push_str("\n\nThe last answer was not taken: ");
            message.push_str(complaint);
        }
        // The client may show it in a terminal.
        visible_lines(&message).into_owned()
    }
}

/// An interaction as a form in a result; none for a secret.
pub(super) fn form_requests(interaction: &Interaction, command: &str) -> Option<InputRequests> {
    let form = ElicitForm {
        question: &interaction.question,
        command: Some(command),
        complaint: None,
    };
    (!interaction.question.secret).then(|| form.input_requests(interaction.id))
}

fn answer_schema(question: &Question) -> PrimitiveSchemaDefinition {
    const TITLE: &str = "Answer";
    let default = question.default.as_deref();
    if !question.options.is_empty() {
        let choice = EnumSchema::builder(question.options.clone()).title(TITLE);
        let choice = match default.filter(|it| question.options.iter().any(|option| option == it)) {
            Some(default) => choice.with_default(default).map(|choice| choice.build()),
            None => Ok(choice.build()),
        };
        if let Ok(choice) = choice {
            return PrimitiveSchemaDefinition::Enum(choice);
        }
    }
    match question.kind {
        QuestionKind::Confirmation => {
            let choice = BooleanSchema::new().title(TITLE);
            let default = default.and_then(|default| default.chars().next());
            PrimitiveSchemaDefinition::Boolean(match default {
                Some('y' | 'Y') => choice.with_default(true),
                Some('n' | 'N') => choice.with_default(false),
                Some(_) | None => choice,
            })
        }
        QuestionKind::InputRequest
        | QuestionKind::ChoiceSelection
        | QuestionKind::FileSelection => {
            let title = match question.kind {
                QuestionKind::FileSelection => "Path",
                QuestionKind::InputRequest
                | QuestionKind::ChoiceSelection
                | QuestionKind::Confirmation => TITLE,
            };
            let text = StringSchema::new().title(title);
            PrimitiveSchemaDefinition::String(match default {
                Some(default) => text.with_default(default),
                None => text,
            })
        }
    }
}

impl From<ElicitResult> for FormReply {
    fn from(result: ElicitResult) -> Self {
        if result.action == ElicitationAction::Accept {
            result
                .content
                .as_ref()
                .map_or(Self::Invalid, parse_accepted)
        } else if result.action == ElicitationAction::Cancel {
            Self::Dismissed
        } else {
            Self::Declined
        }
    }
}

impl FormReply {
    /// As [`FormReply::from`], from what a client sent with a repeated call.
    pub(super) fn parse(value: Value) -> Self {
        serde_json::from_value::<ElicitResult>(value).map_or(Self::Invalid, Self::from)
    }
}

/// The field's value; a form with a single field may have it under another name.
fn parse_accepted(content: &Value) -> FormReply {
    let Value::Object(fields) = content else {
        return FormReply::Invalid;
    };
    let only = fields.values().next().filter(|_| fields.len() == 1);
    match fields.get(FIELD).or(only) {
        Some(Value::String(text)) => FormReply::Value(text.clone()),
        Some(Value::Bool(true)) => FormReply::Value("yes".to_owned()),
        Some(Value::Bool(false)) => FormReply::Value("no".to_owned()),
        Some(Value::Number(number)) => FormReply::Value(number.to_string()),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => FormReply::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(question: &Question) -> Value {
        serde_json::to_value(answer_schema(question)).unwrap()
    }

    #[test]
    fn every_kind_has_a_field() {
        let confirmation = Question::new(QuestionKind::Confirmation, "Sure?");
        assert_eq!(schema(&confirmation)["type"], "boolean");
        let default = Some("N".to_owned());
        let with_default = Question {
            default: default.clone(),
            ..confirmation.clone()
        };
        assert_eq!(schema(&with_default)["default"], false);
        let options = vec!["y".to_owned(), "N".to_owned()];
        let words = Question {
            options: options.clone(),
            default,
            ..confirmation
        };
        let field = schema(&words);
        assert_eq!(
            (&field["enum"], &field["default"]),
            (&json!(["y", "N"]), &json!("N"))
        );
        let foreign = Question {
            options,
            default: Some("maybe".to_owned()),
            ..Question::new(QuestionKind::ChoiceSelection, "Which?")
        };
        assert_eq!(schema(&foreign).get("default"), None);
        let path = Question {
            default: Some("/tmp".to_owned()),
            ..Question::new(QuestionKind::FileSelection, "Where?")
        };
        let field = schema(&path);
        assert_eq!(
            (&field["type"], &field["title"]),
            (&json!("string"), &json!("Path"))
        );
        assert_eq!(field["default"], "/tmp");
    }

    #[test]
    fn a_form_says_who_asks_and_what_was_wrong() {
        let mut question = Question::new(QuestionKind::InputRequest, "Name:");
        let id = ostler_model::ExecutionId::mint();
        question.execution = Some(id);
        let form = ElicitForm {
            question: &question,
            command: Some(&"npm ".repeat(100)),
            complaint: Some("too short"),
        };
        let params = serde_json::to_value(form.elicit_params()).unwrap();
        let message = params["message"].as_str().unwrap();
        assert!(
            message.starts_with("npm npm") && message.len() < 200,
            "{message}"
        );
        assert!(message.contains(&id.short()) && message.contains("Name:"));
        assert!(message.ends_with("too short"));
        assert_eq!(params["mode"], "form");
        assert_eq!(params["requestedSchema"]["type"], "object");
    }

    #[test]
    fn replies_are_taken_leniently_and_never_invented() {
        let reply = |value| FormReply::parse(value);
        let accept = |content: Value| json!({"action": "accept", "content": content});
        let value = |text: &str| FormReply::Value(text.to_owned());
        assert_eq!(reply(accept(json!({"answer": "x"}))), value("x"));
        assert_eq!(reply(accept(json!({"answer": true}))), value("yes"));
        assert_eq!(reply(accept(json!({"answer": false}))), value("no"));
        assert_eq!(reply(accept(json!({"answer": 3}))), value("3"));
        assert_eq!(reply(accept(json!({"other": "x"}))), value("x"));
        assert_eq!(
            reply(accept(json!({"answer": "x", "other": "y"}))),
            value("x")
        );
        let nothing = [
            accept(json!({"a": "x", "b": "y"})),
            accept(json!({})),
            accept(json!({"answer": null})),
            accept(json!("x")),
            json!({"action": "accept"}),
            json!({}),
            json!("accept"),
        ];
        for given in nothing {
            assert_eq!(reply(given.clone()), FormReply::Invalid, "{given}");
        }
        assert_eq!(reply(json!({"action": "decline"})), FormReply::Declined);
        assert_eq!(reply(json!({"action": "cancel"})), FormReply::Dismissed);
    }
}
