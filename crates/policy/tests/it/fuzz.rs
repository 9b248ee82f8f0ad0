//! Evaluation ends with a decision for any script, and appending a script to a denied one keeps it
//! denied.

use std::path::Path;

use ostler_fuzz::fuzz;
use ostler_model::{ByteString, Command};
use ostler_policy::{CommandContext, PolicyDecision, RuleSet, RuleSource};

const SEEDS: [&str; 12] = [
    "git status && grep -rn 'a b' src | head -5",
    "for f in *.txt; do echo \"$f\" >> out; done",
    "cat <<'E' | sh\nrm -rf /\nE\n",
    "x=$(printf '%s' \"${HOME%/}\") && cd \"$x\" || exit 1",
    "[[ $# -eq 0 && -n ${A[0]} ]] && (( i++ ))",
    "env -i A=b nice -n 5 timeout 3 sh -c 'echo hi'",
    "find . -name '*.rs' -exec sed -i s/a/b/ {} +",
    "echo {a,b}{1..3} ~root/`id` $'\\x41' <(ls) 2>&1",
    "case $1 in -h|--help) usage;; *) :;; esac",
    "f() { local a=1; echo $((a + 2)); }; f",
    "sudo -u bob -- bash -lc \"eval '$CMD'\"",
    "python3 -c 'import os; os.system(\"id\")' # no",
];

fn decision(set: &RuleSet, script: &str) -> PolicyDecision {
    let command = Command::Shell {
        shell: "/bin/bash".into(),
        script: script.into(),
    };
    let cwd = ByteString::from("/srv/project");
    set.evaluate(&CommandContext::new(&command, &cwd)).decision
}

#[test]
fn fuzz_judge() {
    let set = RuleSet::load(&RuleSource::shipped()).expect("the shipped rules");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/judge");
    let seeds = SEEDS.map(|seed| seed.as_bytes().to_vec()).to_vec();
    fuzz(&corpus, seeds, |input| {
        let script = String::from_utf8_lossy(input);
        assert_eq!(decision(&set, &script), decision(&set, &script));
        let before = format!("rm -rf /\n{script}");
        assert_ne!(decision(&set, &before), PolicyDecision::Allow, "{before}");
    });
}
