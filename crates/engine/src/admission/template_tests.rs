//! Starts that were made from a command template.

use ostler_model::TemplateRecord;
use ostler_policy::{PolicyDecision, PolicyVerdict, RuleSet, RuleSource, RuleTier};

use super::command_policy::evaluate;
use super::tests::{try_admit, value, words};
use crate::error::Error;
use crate::request::StartRequest;
use crate::settings::Settings;

fn template(confirm: bool) -> TemplateRecord {
    TemplateRecord {
        id: "init_project".to_owned(),
        parameters: [("name".to_owned(), "demo".into())].into(),
        confirm,
    }
}

fn request(confirm: bool) -> StartRequest {
    words(&["true", "demo"]).with_template(template(confirm))
}

fn with_policy(decision: &str) -> Settings {
    let mut settings = Settings::new("/nowhere");
    settings.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let rules = format!(
        "default = \"allow\"\n[[rule]]\nid = \"of-true\"\nprefix = [\"true\"]\n\
         decision = \"{decision}\"\njustification = \"x\"\nmatch = [\"true\"]\nnot_match = [\"ls\"]\n"
    );
    let source = RuleSource::new(RuleTier::User, "test", rules);
    settings.policy = Some(RuleSet::load(&[source]).unwrap().into());
    settings
}

fn verdict(settings: &Settings, confirm: bool) -> Option<PolicyVerdict> {
    evaluate(settings, &request(confirm)).unwrap()
}

#[test]
fn a_template_that_requires_confirmation_asks_with_and_without_a_policy() {
    for settings in [Settings::new("/nowhere"), with_policy("allow")] {
        let verdict = verdict(&settings, true).unwrap();
        assert_eq!(verdict.decision, PolicyDecision::Ask);
        assert_eq!(verdict.rule, "template:init_project");
    }
}

#[test]
fn it_loosens_no_policy_and_replaces_no_question_of_one() {
    assert_eq!(verdict(&with_policy("ask"), true).unwrap().rule, "of-true");
    let denied = evaluate(&with_policy("deny"), &request(true)).unwrap_err();
    assert!(matches!(denied, Error::Denied { rule, .. } if rule == "of-true"));
}

#[test]
fn other_templates_are_decided_by_the_policy_alone() {
    assert_eq!(verdict(&Settings::new("/nowhere"), false), None);
    let allowed = verdict(&with_policy("allow"), false).unwrap();
    assert_eq!(allowed.decision, PolicyDecision::Allow);
}

#[test]
fn it_is_recorded_with_its_label() {
    let admitted = try_admit(&with_policy("allow"), request(true)).unwrap();
    assert_eq!(admitted.spec.labels, ["template:init_project"]);
    let record = admitted.spec.request.unwrap();
    assert_eq!(record.template.as_deref(), Some(&template(true)));
}

#[test]
fn what_names_a_template_is_checked() {
    let with = |template| value(words(&["true"]).with_template(template));
    for id in ["", "a b", "\u{1b}[2J"] {
        let id = id.to_owned();
        let message = with(TemplateRecord {
            id,
            ..template(false)
        });
        assert!(message.contains("template"), "{message}");
    }
    let many = (0..33).map(|number| (number.to_string(), "x".into()));
    let message = with(TemplateRecord {
        parameters: many.collect(),
        ..template(false)
    });
    assert!(message.contains("parameters of the template"), "{message}");
}
