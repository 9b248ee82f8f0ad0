//! Questions to people.

use ostler_api::{ApprovalBody, InteractionBody};
use ostler_engine::Interaction;

/// A question to a person.
pub fn interaction_body(interaction: &Interaction) -> InteractionBody {
    let question = &interaction.question;
    let approval = question.approval.as_ref().map(|approval| ApprovalBody {
        rule: approval.rule.clone(),
        reason: approval.reason.clone(),
        command: approval.command.clone(),
    });
    InteractionBody {
        id: interaction.id.to_string(),
        kind: question.kind,
        message: question.message.clone(),
        options: question.options.clone(),
        status: interaction.state.as_str().to_owned(),
        approval,
        execution: question.execution.map(|id| id.short()),
        session: interaction.owner.session.as_ref().map(ToString::to_string),
        created_at: interaction.created_at,
        expires_at: interaction.expires_at,
    }
}
