//! Command templates.

use ostler_api::{CommandTemplateBody, CommandTemplateParameterBody, CommandTemplatesBody};
use ostler_template::{
    ArgumentTemplate, CatalogEntry, ParameterType, TemplateCatalog, TemplateParameter,
    TemplatePermission,
};
use serde_json::Value;

/// The templates of a category, or all of them.
pub fn command_templates_body(
    catalog: &TemplateCatalog,
    category: Option<&str>,
) -> CommandTemplatesBody {
    let problems = catalog.problems().iter();
    CommandTemplatesBody {
        templates: catalog.list(category).map(command_template_body).collect(),
        problems: problems.map(ToString::to_string).collect(),
    }
}

/// One template.
pub fn command_template_body(entry: &CatalogEntry) -> CommandTemplateBody {
    let template = &entry.template;
    let args = template.args.iter().map(ArgumentTemplate::as_str);
    let permissions = template.required_permissions.iter().copied();
    let parameters = template.parameters.iter();
    CommandTemplateBody {
        id: template.id.clone(),
        name: template.name.clone(),
        description: template.description.clone(),
        category: template.category.clone(),
        command: template.command.clone(),
        args_template: args.map(str::to_owned).collect(),
        required_permissions: permissions
            .map(TemplatePermission::as_str)
            .map(str::to_owned)
            .collect(),
        estimated_duration: template.estimated_duration_s,
        requires_confirmation: template.requires_confirmation,
        parameters: parameters
            .map(|it| (it.name.clone(), parameter_body(it)))
            .collect(),
        source: entry.tier.as_str().to_owned(),
        file: entry.file.clone(),
        replaces_shipped: entry.replaces_shipped,
    }
}

fn parameter_body(parameter: &TemplateParameter) -> CommandTemplateParameterBody {
    CommandTemplateParameterBody {
        kind: parameter.kind.as_str().to_owned(),
        required: parameter.is_required(),
        default: parameter
            .default
            .as_deref()
            .map(|text| default_value(parameter.kind, text)),
        options: parameter.options.clone(),
        description: parameter.description.clone(),
    }
}

/// A default as a value of its type.
fn default_value(kind: ParameterType, text: &str) -> Value {
    match kind {
        ParameterType::Integer => text.parse::<i64>().map_or(Value::Null, Value::from),
        ParameterType::Boolean => Value::from(text == "true"),
        ParameterType::String | ParameterType::Choice | ParameterType::Path => Value::from(text),
    }
}
