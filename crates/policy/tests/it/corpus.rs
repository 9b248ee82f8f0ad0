//! The corpora: attempts that must not be allowed, ordinary commands with their decision.

use crate::judge::{judge, lines, shipped};
use ostler_policy::{PolicyDecision, RuleSet, RuleSource};

const BYPASSES: &str = include_str!("../corpus/bypass.txt");
const ORDINARY: &str = include_str!("../corpus/ordinary.txt");
/// How many lines each corpus has at least.
const LEAST: usize = 300;

#[test]
fn no_attempt_is_allowed() {
    let set = shipped();
    let allowed: Vec<String> = lines(BYPASSES)
        .filter(|line| judge(&set, line).decision == PolicyDecision::Allow)
        .collect();
    assert!(allowed.is_empty(), "{allowed:#?}");
    assert!(lines(BYPASSES).count() >= LEAST);
}

/// Attempts stay attempts where everything that is not denied is allowed: the shells, wrappers
/// and options in them are seen, not merely unknown.
#[test]
fn wrapped_denials_are_found_where_everything_else_is_allowed() {
    let rules = r#"
        default = "allow"
        [[rule]]
        id = "no-rm"
        prefix = ["rm"]
        decision = "deny"
        justification = "nothing is removed"
        match = ["rm x"]
        not_match = ["echo rm"]
    "#;
    let source = RuleSource::new(ostler_policy::RuleTier::User, "test", rules);
    let set = RuleSet::load(&[source]).unwrap();
    let runs_rm = |line: &String| {
        let plain = line.contains("rm x") || line.contains("rm -rf build");
        let data = ["echo", "printf", "cm0g", "$'", "trap", "| sh", "| bash"]
            .iter()
            .any(|it| line.contains(it));
        plain && !data && line.is_ascii()
    };
    let found = lines(BYPASSES).filter(runs_rm);
    let (denied, missed): (Vec<String>, Vec<String>) =
        found.partition(|line| judge(&set, line).decision == PolicyDecision::Deny);
    let allowed: Vec<&String> = missed
        .iter()
        .filter(|line| judge(&set, line).decision == PolicyDecision::Allow)
        .collect();
    assert!(denied.len() > 100, "{}", denied.len());
    assert!(allowed.is_empty(), "{allowed:#?}");
}

#[test]
fn ordinary_commands_get_their_decision() {
    let set = shipped();
    let mut wrong = Vec::new();
    for line in lines(ORDINARY) {
        let (wanted, command) = line.split_once(' ').unwrap();
        let verdict = judge(&set, command);
        if verdict.decision.as_str() != wanted {
            wrong.push(format!("{command:?} is to be {wanted}, {verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(lines(ORDINARY).count() >= LEAST);
}

/// The words of an attempt and those of an ordinary command do not affect each other: after an
/// allowed command, an attempt is still denied.
#[test]
fn an_attempt_behind_an_allowed_command_is_not_allowed() {
    let set = shipped();
    for line in lines(BYPASSES) {
        if line.starts_with("argv ") || line.starts_with("set ") {
            continue;
        }
        for joint in ["ls; ", "ls && ", "ls | ", "ls\n"] {
            let script = format!("{joint}{line}");
            let verdict = judge(&set, &script);
            assert_ne!(verdict.decision, PolicyDecision::Allow, "{script:?}");
        }
    }
}

#[test]
fn the_policy_of_document_001_alone_denies_everything_else() {
    let set = RuleSet::load(&RuleSource::claude_only()).unwrap();
    assert_eq!(judge(&set, "claude help").decision, PolicyDecision::Allow);
    for line in [
        "ls",
        "claude",
        "claude run --root",
        "claude help; ls",
        "x=1",
    ] {
        assert_eq!(judge(&set, line).decision, PolicyDecision::Deny, "{line}");
    }
}

/// What hides a program from a rule that denies, where everything else is allowed.
#[test]
fn a_denial_is_found_behind_every_known_wrapper_and_option() {
    let set = shipped();
    for line in [
        "chronic reboot",
        "perf stat -r 3 reboot",
        "hyperfine -w 3 'reboot now'",
        "watchexec -- reboot",
        "nodemon --exec 'reboot now'",
        "nodemon --exec=reboot",
        "systemd-cat -t x reboot",
        "eatmydata reboot",
        "cpulimit -l 5 -- reboot",
        "proxychains4 -q reboot",
        "torsocks reboot",
        "ls | ifne reboot",
        "cgexec -g cpu:x reboot",
        "npx -c 'reboot now'",
        "npm exec -c 'reboot now'",
        "less '+!reboot' a",
        "env -S 'rm -rf /'",
        "env -S'rm -rf /'",
        "env -iS 'rm -rf' /",
        "env --split-string='rm -rf /'",
        "/usr/lib/git-core/git-push --force",
        "git --git-dir .git push --force",
        "git -C . rebase -x 'reboot now' HEAD~1",
        "git rebase --exec='reboot now' HEAD~1",
        "git submodule --quiet foreach 'reboot now'",
        "git filter-branch --tree-filter 'reboot now'",
        "ostler --state-dir /x approve i1",
        "ostler --set a=b interactions answer i1 yes",
        "echo \"${x:=`reboot`}\"",
        "echo ${x:-`reboot`}",
        "rm -rf \"$HOME\"",
        "rm -rf ${HOME}/",
        "sudo rm -rf /*",
        "re\\\nboot",
    ] {
        let verdict = judge(&set, line);
        assert_eq!(
            verdict.decision,
            PolicyDecision::Deny,
            "{line:?}: {verdict}"
        );
    }
}
