//! From the name of a template to the command of a start.

use std::collections::BTreeMap;

use ostler_model::{ByteString, Caller, ErrorCode, Scope, visible};
use ostler_template::{CatalogEntry, TemplateCatalog, TemplateCommand, TemplatePermission};

use crate::error::ApiError;

/// The most characters of an unknown id that a message quotes.
const QUOTED_CHARS: usize = 64;

/// The template with this id.
///
/// # Errors
/// When there is none, with the ids that there are and what is wrong with files.
pub fn find_template<'a>(
    catalog: &'a TemplateCatalog,
    id: &str,
) -> Result<&'a CatalogEntry, ApiError> {
    catalog.find(id).ok_or_else(|| {
        let id: String = id.chars().take(QUOTED_CHARS).collect();
        let ids: Vec<&str> = catalog
            .list(None)
            .map(|it| it.template.id.as_str())
            .collect();
        let message = format!(
            "there is no template '{}'; allowed: {}",
            visible(&id),
            ids.join(", ")
        );
        let error = ApiError::new(ErrorCode::Template, message);
        match catalog.problems() {
            [] => error,
            [problem, ..] => error.with_hint(format!("a definition is not used: {problem}")),
        }
    })
}

/// The command of a template with these values, for a caller with the permissions it requires.
///
/// # Errors
/// When there is no such template, a permission is missing, or parameters are wrong: all of them.
pub fn template_command(
    catalog: &TemplateCatalog,
    caller: &Caller,
    id: &str,
    values: &BTreeMap<String, ByteString>,
) -> Result<TemplateCommand, ApiError> {
    let template = &find_template(catalog, id)?.template;
    let required = template.required_permissions.iter();
    let missing: Vec<&str> = required
        .filter(|permission| !is_permitted(caller, **permission))
        .map(|permission| permission.as_str())
        .collect();
    if !missing.is_empty() {
        let message = format!("template '{id}' requires {}", missing.join(", "));
        return Err(ApiError::new(ErrorCode::Permission, message));
    }
    template
        .command(values)
        .map_err(|error| ApiError::new(ErrorCode::Template, error.to_string()))
}

/// Whether the caller has a permission. Whoever reaches the engine may start any command of the
/// user, and with that read and change projects: no caller lacks these two.
fn is_permitted(caller: &Caller, permission: TemplatePermission) -> bool {
    match permission {
        TemplatePermission::ProjectRead | TemplatePermission::ProjectWrite => true,
        TemplatePermission::SessionsAll => caller.scope == Scope::Principal,
    }
}

#[cfg(test)]
mod tests {
    use ostler_model::{Owner, Principal, RequestChannel};
    use ostler_template::{TemplateSource, TemplateTier};

    use super::*;

    fn caller(scope: Scope) -> Caller {
        Caller {
            owner: Owner {
                principal: Principal::unix(1000),
                project: None,
                session: None,
                task: None,
                channel: RequestChannel::Local,
            },
            scope,
        }
    }

    fn catalog() -> TemplateCatalog {
        let source = TemplateSource {
            tier: TemplateTier::User,
            name: "/u/a.toml".to_owned(),
            text: "[[template]]\nid = \"all\"\ncommand = \"true\"\n\
                   required_permissions = [\"project:write\", \"sessions:all\"]\n"
                .to_owned(),
        };
        TemplateCatalog::from_sources(&[source], Vec::new())
    }

    #[test]
    fn a_session_lacks_what_only_the_whole_principal_may() {
        let none = BTreeMap::new();
        let error = template_command(&catalog(), &caller(Scope::Session), "all", &none);
        let error = error.unwrap_err();
        assert_eq!(error.code, ErrorCode::Permission);
        assert_eq!(error.message, "template 'all' requires sessions:all");
        assert!(template_command(&catalog(), &caller(Scope::Principal), "all", &none).is_ok());
    }

    #[test]
    fn an_unknown_template_names_those_there_are() {
        let none = BTreeMap::new();
        let error = template_command(&catalog(), &caller(Scope::Session), "al\u{7}", &none);
        let error = error.unwrap_err();
        assert_eq!(error.code, ErrorCode::Template);
        assert!(error.message.contains("all, analyze_code") && !error.message.contains('\u{7}'));
    }
}
