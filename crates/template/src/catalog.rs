//! The templates of all sources.

use std::collections::BTreeMap;

use crate::definition::CommandTemplate;
use crate::definition_file::{TemplateProblem, parse_templates};
use crate::source::{TemplateSource, TemplateTier};

/// A template, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEntry {
    /// The template.
    pub template: CommandTemplate,
    /// Its origin.
    pub tier: TemplateTier,
    /// The file that defines it.
    pub file: String,
    /// Whether it replaces a shipped one.
    pub replaces_shipped: bool,
}

/// The templates that can be used, and what is wrong with the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TemplateCatalog {
    entries: BTreeMap<String, CatalogEntry>,
    problems: Vec<TemplateProblem>,
}

impl TemplateCatalog {
    /// The templates of these sources and the shipped ones. A file with a problem is not used; a
    /// template of the user replaces a shipped one; one whose id is taken otherwise is not used.
    /// `unreadable` is what is wrong with files that have no text.
    #[must_use]
    pub fn from_sources(sources: &[TemplateSource], unreadable: Vec<TemplateProblem>) -> Self {
        let mut catalog = Self {
            problems: unreadable,
            ..Self::default()
        };
        catalog.add(&TemplateSource::shipped());
        for tier in [TemplateTier::User, TemplateTier::Project] {
            for source in sources.iter().filter(|source| source.tier == tier) {
                catalog.add(source);
            }
        }
        catalog
    }

    fn add(&mut self, source: &TemplateSource) {
        match parse_templates(&source.name, &source.text) {
            Ok(templates) => {
                for template in templates {
                    self.add_template(source, template);
                }
            }
            Err(problems) => self.problems.extend(problems),
        }
    }

    fn add_template(&mut self, source: &TemplateSource, template: CommandTemplate) {
        let taken = self.entries.get(&template.id);
        let replaces_shipped = taken.is_some_and(|it| it.tier == TemplateTier::Shipped);
        if let Some(taken) = taken
            && !(replaces_shipped && source.tier == TemplateTier::User)
        {
            let message = format!(
                "template '{}' is not used: {} ({}) has this id; allowed: another id",
                template.id, taken.file, taken.tier
            );
            self.problems.push(TemplateProblem {
                file: source.name.clone(),
                line: None,
                message,
            });
            return;
        }
        let entry = CatalogEntry {
            tier: source.tier,
            file: source.name.clone(),
            replaces_shipped,
            template,
        };
        self.entries.insert(entry.template.id.clone(), entry);
    }

    /// The template with this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&CatalogEntry> {
        self.entries.get(id)
    }

    /// All templates, or those of one category, by id.
    pub fn list(&self, category: Option<&str>) -> impl Iterator<Item = &CatalogEntry> {
        let entries = self.entries.values();
        entries.filter(move |it| category.is_none_or(|category| it.template.category == category))
    }

    /// What is wrong with files and templates that are not used.
    #[must_use]
    pub fn problems(&self) -> &[TemplateProblem] {
        &self.problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::ParameterType;

    fn source(tier: TemplateTier, name: &str, id: &str) -> TemplateSource {
        TemplateSource {
            tier,
            name: name.to_owned(),
            text: format!("[[template]]\nid = \"{id}\"\ncommand = \"{name}\"\n"),
        }
    }

    #[test]
    fn the_shipped_templates_are_those_of_the_document() {
        let catalog = TemplateCatalog::from_sources(&[], Vec::new());
        assert_eq!(catalog.problems(), []);
        let ids: Vec<&str> = catalog
            .list(None)
            .map(|it| it.template.id.as_str())
            .collect();
        assert_eq!(
            ids,
            [
                "analyze_code",
                "generate_docs",
                "generate_tests",
                "init_project",
                "refactor_code"
            ]
        );
        let refactor = &catalog.find("refactor_code").unwrap().template;
        assert!(refactor.requires_confirmation);
        assert_eq!(refactor.estimated_duration_s, Some(120));
        let style = &refactor.parameters[1];
        assert_eq!(
            (style.name.as_str(), style.kind),
            ("style", ParameterType::Choice)
        );
        assert_eq!(style.default.as_deref(), Some("clean"));
        let testing: Vec<_> = catalog.list(Some("testing")).collect();
        assert_eq!(testing.len(), 1);
    }

    #[test]
    fn a_users_template_replaces_a_shipped_one_and_a_projects_replaces_none() {
        let catalog = TemplateCatalog::from_sources(
            &[
                source(TemplateTier::Project, "project-1", "analyze_code"),
                source(TemplateTier::Project, "project-2", "build"),
                source(TemplateTier::Project, "project-3", "refactor_code"),
                source(TemplateTier::User, "user-1", "refactor_code"),
                source(TemplateTier::User, "user-2", "refactor_code"),
            ],
            Vec::new(),
        );
        let command = |id: &str| catalog.find(id).unwrap().template.command.as_str();
        assert_eq!(
            (
                command("analyze_code"),
                command("build"),
                command("refactor_code")
            ),
            ("claude", "project-2", "user-1")
        );
        assert!(catalog.find("refactor_code").unwrap().replaces_shipped);
        let files: Vec<&str> = catalog
            .problems()
            .iter()
            .map(|it| it.file.as_str())
            .collect();
        assert_eq!(files, ["user-2", "project-1", "project-3"]);
        let message = catalog.problems()[2].to_string();
        assert!(message.contains("user-1 (user) has this id"), "{message}");
    }
}
