//! From the name of a template to the command of a start.

use std::collections::BTreeMap;

use ostler_model::{ByteString, Caller, ErrorCode, Scope, visible};
use ostler_template::{
    CatalogEntry, TemplateCatalog, TemplateCommand, TemplatePermission, TemplateTier,
};

use crate::error::ApiError;
use crate::project_access::ProjectAccess;

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

/// The command of a template with these values, for a caller with the permissions it requires in the
/// project of its starts.
///
/// # Errors
/// When there is no such template, a permission is missing, or parameters are wrong: all of them.
pub fn template_command(
    catalog: &TemplateCatalog,
    caller: &Caller,
    access: &ProjectAccess,
    id: &str,
    values: &BTreeMap<String, ByteString>,
) -> Result<TemplateCommand, ApiError> {
    let entry = find_template(catalog, id)?;
    let template = &entry.template;
    let required = required_permissions(entry).into_iter();
    let missing: Vec<&str> = required
        .filter(|permission| !is_permitted(caller, access, *permission))
        .map(TemplatePermission::as_str)
        .collect();
    if !missing.is_empty() {
        let message = format!("template '{id}' requires {}", missing.join(", "));
        return Err(ApiError::new(ErrorCode::Permission, message));
    }
    template
        .command(values)
        .map_err(|error| ApiError::new(ErrorCode::Template, error.to_string()))
}

/// What a template requires. One that says nothing of projects may do anything there; and so may
/// one that the project itself defines, whatever it says.
fn required_permissions(entry: &CatalogEntry) -> Vec<TemplatePermission> {
    let mut required = entry.template.required_permissions.clone();
    let names_write = required.contains(&TemplatePermission::ProjectWrite);
    let is_trusted = entry.tier != TemplateTier::Project;
    let names_read = is_trusted && required.contains(&TemplatePermission::ProjectRead);
    if !names_write && !names_read {
        required.push(TemplatePermission::ProjectWrite);
    }
    required
}

/// Whether the caller has a permission. Every caller may read in the projects that it sees.
fn is_permitted(caller: &Caller, access: &ProjectAccess, permission: TemplatePermission) -> bool {
    match permission {
        TemplatePermission::ProjectRead => true,
        TemplatePermission::ProjectWrite => access.may_write(caller.owner.project.as_deref()),
        TemplatePermission::SessionsAll => caller.scope == Scope::Principal,
    }
}

#[cfg(test)]
mod tests {
    use ostler_model::{Owner, Principal, RequestChannel};
    use ostler_template::TemplateSource;

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
            projects: ostler_model::ProjectView::default(),
        }
    }

    fn source(tier: TemplateTier, templates: &[(&str, &str)]) -> TemplateSource {
        let text = templates.iter().map(|(id, permissions)| {
            format!(
                "[[template]]\nid = \"{id}\"\ncommand = \"true\"\n\
                 required_permissions = [{permissions}]\n"
            )
        });
        TemplateSource {
            tier,
            name: "/u/a.toml".to_owned(),
            text: text.collect(),
        }
    }

    fn catalog() -> TemplateCatalog {
        let user = source(
            TemplateTier::User,
            &[
                ("all", "\"project:write\", \"sessions:all\""),
                ("reads", "\"project:read\""),
                ("silent", ""),
                ("both", "\"project:read\", \"project:write\""),
            ],
        );
        let own = source(TemplateTier::Project, &[("own", "\"project:read\"")]);
        TemplateCatalog::from_sources(&[user, own], Vec::new())
    }

    fn start(id: &str, scope: Scope, access: &ProjectAccess) -> Result<(), ApiError> {
        let started = template_command(&catalog(), &caller(scope), access, id, &BTreeMap::new());
        started.map(drop)
    }

    #[test]
    fn a_session_lacks_what_only_the_whole_principal_may() {
        let write = &ProjectAccess::default();
        let error = start("all", Scope::Session, write).unwrap_err();
        assert_eq!(error.code, ErrorCode::Permission);
        assert_eq!(error.message, "template 'all' requires sessions:all");
        assert!(start("all", Scope::Principal, write).is_ok());
    }

    #[test]
    fn who_may_only_read_starts_what_only_reads() {
        let (read, write) = (&ProjectAccess::read_only(), &ProjectAccess::default());
        assert!(start("reads", Scope::Session, read).is_ok());
        for id in ["silent", "both", "own"] {
            let error = start(id, Scope::Session, read).unwrap_err();
            assert_eq!(
                error.message,
                format!("template '{id}' requires project:write")
            );
            assert!(start(id, Scope::Session, write).is_ok(), "{id}");
        }
    }

    #[test]
    fn an_unknown_template_names_those_there_are() {
        let error = start("al\u{7}", Scope::Session, &ProjectAccess::default()).unwrap_err();
        assert_eq!(error.code, ErrorCode::Template);
        assert!(error.message.contains("all, analyze_code") && !error.message.contains('\u{7}'));
    }
}
