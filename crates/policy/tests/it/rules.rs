//! Rule files: tiers, self-tests, pins, and properties of every policy.

use std::path::PathBuf;
use std::sync::LazyLock;

use ostler_model::{ByteString, Command};
use ostler_policy::{
    CommandContext, LoadError, PolicyDecision, PolicyVerdict, RuleSet, RuleSource, RuleTier,
};
use proptest::prelude::*;

static SHIPPED: LazyLock<RuleSet> =
    LazyLock::new(|| RuleSet::load(&RuleSource::shipped()).expect("the shipped rules"));

fn rule(id: &str, prefix: &str, decision: &str) -> String {
    format!(
        "[[rule]]\nid = \"{id}\"\nprefix = {prefix}\ndecision = \"{decision}\"\n\
         justification = \"because\"\n"
    )
}

fn tested(id: &str, program: &str, decision: &str) -> String {
    let head = rule(id, &format!("[\"{program}\"]"), decision);
    format!("{head}match = [\"{program} x\"]\nnot_match = [\"no{program}\"]\n")
}

fn load(files: &[(RuleTier, &str)]) -> Result<RuleSet, LoadError> {
    let sources = files
        .iter()
        .map(|(tier, text)| RuleSource::new(*tier, tier.as_str(), *text));
    RuleSet::load(&sources.collect::<Vec<_>>())
}

fn script(set: &RuleSet, script: &str) -> PolicyVerdict {
    let command = Command::Shell {
        shell: "/bin/sh".into(),
        script: script.into(),
    };
    set.evaluate(&CommandContext::new(&command, &ByteString::from("/w")))
}

#[test]
fn rules_without_examples_or_with_wrong_ones_are_errors() {
    let bare = rule("a", "[\"ls\"]", "allow");
    for (tail, expected) in [
        ("", "it has no 'match'"),
        ("match = [\"ls\"]", "it has no 'not_match'"),
        (
            "match = [\"rm\"]\nnot_match = [\"x\"]",
            "does not match its own example 'rm'",
        ),
        (
            "match = [\"ls\"]\nnot_match = [\"env ls\"]",
            "matches 'env ls'",
        ),
        (
            "match = [\"ls\"]\nnot_match = [\"x\"]\nfoo = 1",
            "unknown field",
        ),
    ] {
        let error = load(&[(RuleTier::User, &format!("{bare}{tail}"))]).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(load(&[(RuleTier::User, "[[rule]")]).is_err());
}

#[test]
fn higher_tiers_replace_and_switch_off_and_the_strictest_wins() {
    let (ask, allow) = (tested("a", "ls", "ask"), tested("a", "ls", "allow"));
    let set = load(&[(RuleTier::User, &allow), (RuleTier::Default, &ask)]).unwrap();
    assert_eq!(script(&set, "ls").decision, PolicyDecision::Allow);
    let set = load(&[
        (RuleTier::Default, &ask),
        (RuleTier::User, "disable = [\"a\"]\ndefault = \"deny\""),
    ]);
    assert_eq!(script(&set.unwrap(), "ls").decision, PolicyDecision::Deny);
    let both = format!(
        "{}{}",
        tested("a", "ls", "allow"),
        tested("b", "ls", "deny")
    );
    let verdict = script(&load(&[(RuleTier::User, &both)]).unwrap(), "ls");
    assert_eq!(
        (verdict.decision, verdict.rule.as_str()),
        (PolicyDecision::Deny, "b")
    );
    assert_eq!(verdict.fired.len(), 2);
    for below in [
        [
            (RuleTier::Admin, ask.as_str()),
            (RuleTier::User, "disable = [\"a\"]"),
        ],
        [(RuleTier::User, &ask), (RuleTier::User, &allow)],
    ] {
        assert!(load(&below).is_err(), "{below:?}");
    }
}

#[test]
fn a_workspace_tightens_and_never_loosens() {
    let set = load(&[(RuleTier::User, &tested("a", "ls", "allow"))]).unwrap();
    let on_top = |text: &str| set.with_workspace(&RuleSource::new(RuleTier::User, "w", text));
    let tightened = on_top(&tested("b", "ls", "deny")).unwrap();
    assert_eq!(script(&tightened, "ls").decision, PolicyDecision::Deny);
    assert_eq!(script(&set, "ls").decision, PolicyDecision::Allow);
    for text in [
        tested("b", "rm", "allow"),
        "disable = [\"a\"]".to_owned(),
        "default = \"allow\"".to_owned(),
        "trusted = [\"/w\"]".to_owned(),
        "variables = [\"PATH\"]".to_owned(),
        tested("a", "ls", "deny"),
    ] {
        assert!(on_top(&text).is_err(), "{text}");
    }
    let tightened = on_top("default = \"deny\"").unwrap();
    assert_eq!(tightened.default_decision(), PolicyDecision::Deny);
}

#[test]
fn a_name_never_means_a_planted_program() {
    let head = rule("git", "[\"git\", \"status\"]", "allow");
    let pinned = format!(
        "{head}program = [\"/usr/bin/git\"]\nmatch = [\"git status\"]\nnot_match = [\"./git status\"]\n"
    );
    let free = format!("{head}match = [\"git status\"]\nnot_match = [\"./git status\"]\n");
    let cwd = ByteString::from("/w");
    let judged = |text: &str, program: &str, found: Option<&str>| {
        let set = load(&[(RuleTier::User, text)]).unwrap();
        let found = found.map(PathBuf::from);
        let find = |_: &str| found.clone();
        let command = Command::Argv {
            program: program.into(),
            args: vec!["status".into()],
        };
        let subject = CommandContext {
            lookup: Some(&find),
            ..CommandContext::new(&command, &cwd)
        };
        set.evaluate(&subject).decision == PolicyDecision::Allow
    };
    for (text, program, found, allowed) in [
        (&free, "git", None, true),
        (&free, "git", Some("/usr/bin/git"), true),
        (&free, "git", Some("/home/u/.cargo/bin/git"), true),
        (&free, "git", Some("/w/bin/git"), false),
        (&free, "git", Some("/tmp/git"), false),
        (&free, "git", Some("bin/git"), false),
        (&free, "/usr/bin/git", None, true),
        (&free, "./git", None, false),
        (&free, "/w/git", None, false),
        (&free, "/usr/bin/../../w/git", None, false),
        (&pinned, "git", Some("/usr/bin/git"), true),
        (&pinned, "git", Some("/usr/local/bin/git"), false),
        (&pinned, "git", None, false),
        (&pinned, "/usr/bin/git", None, true),
        (&pinned, "/usr/local/bin/git", None, false),
    ] {
        assert_eq!(
            judged(text, program, found),
            allowed,
            "{program} {found:?} {text}"
        );
    }
}

#[test]
fn scripts_that_are_too_long_deep_or_tangled_are_reported_soon() {
    let set = RuleSet::load(&RuleSource::shipped()).unwrap();
    for text in [
        "(".repeat(60_000),
        "$(".repeat(40_000),
        "{ ".repeat(40_000),
        "\"${a:-".repeat(20_000),
        "if ls; then ".repeat(10_000),
        format!("{}ls{}", "(".repeat(5_000), ")".repeat(5_000)),
        "ls; ".repeat(30_000),
        "a".repeat(200_000),
        "sh -c 'sh -c \"".repeat(1_000),
    ] {
        assert_ne!(script(&set, &text).decision, PolicyDecision::Allow);
    }
}

/// One word in one of the ways a shell lets it be written.
fn quoted(word: String, way: u8) -> String {
    match way % 4 {
        0 => format!("'{}'", word.replace('\'', "'\\''")),
        1 => {
            let escaped = word
                .chars()
                .map(|c| match c {
                    '$' | '`' | '"' | '\\' => format!("\\{c}"),
                    _ => c.to_string(),
                })
                .collect::<String>();
            format!("\"{escaped}\"")
        }
        2 => {
            let escaped = word.chars().map(|c| match c {
                '\n' => "'\n'".to_owned(),
                _ => format!("\\{c}"),
            });
            escaped.collect()
        }
        _ => {
            let half = word.chars().count() / 2;
            let (one, other): (String, String) = (
                word.chars().take(half).collect(),
                word.chars().skip(half).collect(),
            );
            format!("{}{}", quoted(one, 0), quoted(other, 1))
        }
    }
}

fn word() -> impl Strategy<Value = String> {
    "[ -~ä中]{1,12}"
}

proptest! {
    #[test]
    fn quoting_changes_nothing(words in prop::collection::vec((word(), any::<u8>()), 0..6)) {
        let set = load(&[(RuleTier::User, &tested("e", "echo", "allow"))]).unwrap();
        let spelled: Vec<String> =
            words.iter().map(|(word, way)| quoted(word.clone(), *way)).collect();
        // To the grammar an escaped blank begins no word: it is not understood, and the decision is
        // to ask.
        prop_assume!(!spelled.iter().any(|word| word.starts_with("\\ ")));
        let verdict = script(&set, &format!("echo {}", spelled.join(" ")));
        let mut wanted = vec!["echo".to_owned()];
        wanted.extend(words.into_iter().map(|(word, _)| word));
        prop_assert_eq!(verdict.decision, PolicyDecision::Allow, "{:?}", verdict);
        prop_assert_eq!(&verdict.fired[0].words, &wanted);
    }

    #[test]
    fn a_word_that_begins_with_an_escaped_blank_is_never_lost(end in "[ \n]{0,2}", rest in "[a-z]{0,2}") {
        let set = load(&[(RuleTier::User, &tested("e", "echo", "allow"))]).unwrap();
        let verdict = script(&set, &format!("echo \\ {rest}{end}"));
        prop_assert_eq!(verdict.decision, PolicyDecision::Ask, "{:?}", verdict);
    }

    #[test]
    fn garbage_never_panics_and_is_never_allowed(text in "[ -~\\n\\t]{0,60}") {
        let rules = format!("default = \"deny\"\n{}", tested("q", "qqqqqq", "allow"));
        let set = load(&[(RuleTier::User, &rules)]).unwrap();
        prop_assert_eq!(script(&set, &text).decision, PolicyDecision::Deny);
    }

    #[test]
    fn any_text_at_all_is_judged(text in any::<String>()) {
        let set = RuleSet::load(&RuleSource::claude_only()).unwrap();
        prop_assert_ne!(script(&set, &text).decision, PolicyDecision::Allow);
    }

    #[test]
    fn shell_soup_is_never_allowed_with_a_substitution_in_it(
        before in "[a-z'\"\\\\$(){};|& \\n]{0,20}",
        after in "[a-z'\"\\\\$(){};|& \\n]{0,20}",
    ) {
        let set = &*SHIPPED;
        let text = format!("ls {before} $(rm -rf build) {after}");
        let quoted = before.contains(['\'', '\\', '#']);
        let verdict = script(set, &text);
        prop_assert!(quoted || verdict.decision != PolicyDecision::Allow, "{:?} {}", text, verdict);
    }

    #[test]
    fn a_stricter_rule_never_loosens(
        program in "(ls|git|rm|env|cargo|curl|sudo|find)",
        strict in "(ask|deny)",
        at in 0_usize..20,
    ) {
        let scripts = [
            "ls", "git status", "rm x", "env rm x", "curl x | sh", "cargo test", "sudo ls",
            "find . -exec rm {} +", "ls; rm x", "git push --force", "$(ls)", "ls > ~/x", "",
            "sh -c 'git status'", "x=1", "timeout 5 ls", "rm -rf /", "claude help", "((", "eval ls",
        ];
        let added = RuleSource::new(RuleTier::User, "more", tested("more", &program, &strict));
        let more = SHIPPED.with_workspace(&added).unwrap();
        let (one, other) = (script(&SHIPPED, scripts[at]), script(&more, scripts[at]));
        prop_assert!(other.decision >= one.decision, "{} {} {}", scripts[at], one, other);
    }
}
