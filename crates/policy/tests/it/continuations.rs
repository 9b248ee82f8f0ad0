//! Lines continued by a backslash: what a rule denies is seen, and what is allowed runs nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use ostler_policy::{PolicyDecision, RuleSet, RuleSource, RuleTier};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::judge::judge;

fn load(rules: &str) -> RuleSet {
    RuleSet::load(&[RuleSource::new(RuleTier::User, "test", rules)]).expect("the rules")
}

#[test]
fn a_rule_that_denies_sees_the_joined_words() {
    let set = load(
        r#"
        default = "allow"
        [[rule]]
        id = "no-mark"
        prefix = ["mark"]
        decision = "deny"
        justification = "it is denied"
        match = ["mark"]
        not_match = ["echo mark"]
        "#,
    );
    for script in [
        "ma\\\nrk",
        "env ma\\\n\\\nrk x",
        "find . -ex\\\nec sh -c 'ma\\\nrk' \\;",
        "echo \"$\\\n(mark)\"",
        "echo `ma\\\\\nrk`",
        "echo `ma\\\nrk`",
        "eval \"ma\\\\\nrk\"",
        "sh -c 'ma\\\nrk'",
        "echo a\\\n#b; mark",
        "ls &\\\n& mark",
        "cat <<E\n$\\\n(mark)\nE",
        "cat <<E\nx\\\nE\ncat <<X\nE\nmark\nX",
        "cat <<E\nx \\\nE\ncat <<X\nE\nmark\nX",
        "ls | ma\\\nrk | wc",
    ] {
        let decision = judge(&set, script).decision;
        assert_eq!(decision, PolicyDecision::Deny, "{script:?}");
    }
    for script in ["echo a \\\n mark", "echo 'ma\\\nrk'", "ls |\\\nwc"] {
        let decision = judge(&set, script).decision;
        assert_eq!(decision, PolicyDecision::Allow, "{script:?}");
    }
}

/// Scripts; `mark` is the program that must not run where a script is allowed.
const SCRIPTS: [&str; 20] = [
    "echo \"$(mark)\"",
    "echo $(mark)",
    "echo `mark`",
    "cat <(mark)",
    "cat <<E\n$(mark)\nE",
    "cat <<E\na$(mark) `mark`\nE",
    "cat <<E\nx\nE\ncat <<X\nE\nmark\nX",
    "cat <<'E'\nx\nE\ncat <<'X'\nE\nmark\nX",
    "cat <<-E\n\tx\n\tE\ncat <<X\nE\nmark\nX",
    "cat <<E\n\nE\nE\n:",
    "cat <<E | cat\nmark\nE",
    "echo a #b; mark",
    "echo a; echo #b; mark\necho",
    "echo 'a #b; mark' \"#b; mark\"",
    "echo a\\;mark \\\\ mark",
    ": | cat || mark",
    ": || mark & :",
    ": && echo \\ mark",
    "echo mark",
    ": mark\necho 'mark\n'",
];

/// What is inserted into them.
const INSERTED: [&str; 8] = [
    "\\\n", "\\\n", "\\", " \\\n", "\\\n ", "\\\\\n", "\\\\\\\n", "\\\n\\\n",
];

/// Scripts with continuations at any place.
fn continued() -> impl Strategy<Value = String> {
    let script = prop::sample::select(SCRIPTS.to_vec());
    let scripts = prop::collection::vec(script, 1..3);
    let inserted = (
        any::<prop::sample::Index>(),
        prop::sample::select(INSERTED.to_vec()),
    );
    let joined = scripts.prop_map(|scripts| scripts.join("\n"));
    (joined, prop::collection::vec(inserted, 1..4)).prop_map(|(mut script, inserted)| {
        for (at, text) in inserted {
            script.insert_str(at.index(script.len() + 1), text);
        }
        script
    })
}

/// A directory for the shells, with the marker program.
struct Marked(PathBuf);

impl Marked {
    fn new() -> Self {
        let directory = std::env::temp_dir().join(format!("ostler-mark-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("bin")).expect("a directory");
        std::os::unix::fs::symlink("/bin/cat", directory.join("bin/cat")).expect("a link");
        std::os::unix::fs::symlink("/bin/mkdir", directory.join("bin/mark")).expect("a link");
        Self(directory)
    }

    /// Whether a shell runs the marker program: it finds no other, and its input is empty.
    fn is_run(&self, shell: &str, script: &str) -> bool {
        // Any argument would name another directory than the one looked for.
        let script = format!("mark() {{ command mark marked; }}\n{script}");
        let status = Process::new(shell)
            .args(["-c", &script])
            .env_clear()
            .env("PATH", self.0.join("bin"))
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.expect("a shell");
        std::fs::remove_dir(self.0.join("marked")).is_ok()
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// Shells of this machine.
fn shells() -> Vec<&'static str> {
    let known = ["/bin/bash", "/bin/dash", "/bin/sh"];
    known
        .into_iter()
        .filter(|it| Path::new(it).exists())
        .collect()
}

#[test]
fn no_script_that_is_allowed_runs_the_marker() {
    let set = load(
        r#"
        [[rule]]
        id = "tells"
        prefix = [["echo", ":", "cat"]]
        decision = "allow"
        opaque = true
        justification = "it tells"
        match = ["echo x"]
        not_match = ["mark"]
        "#,
    );
    let marked = Marked::new();
    let shells = shells();
    assert!(shells.iter().all(|shell| marked.is_run(shell, "mark")));
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(cases())
    });
    let result = runner.run(&continued(), |script| {
        let is_allowed = judge(&set, &script).decision == PolicyDecision::Allow;
        for shell in shells.iter().filter(|_| is_allowed) {
            prop_assert!(!marked.is_run(shell, &script), "{shell}: {script:?}");
        }
        Ok(())
    });
    result.expect("nothing else is run");
}

/// How many scripts are tried.
fn cases() -> u32 {
    let number = std::env::var("PROPTEST_CASES").ok();
    number.and_then(|it| it.parse().ok()).unwrap_or(4_000)
}
