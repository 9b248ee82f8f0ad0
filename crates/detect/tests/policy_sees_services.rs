//! The program that detection names is one that a rule of the command policy can deny.

use std::collections::BTreeMap;
use std::path::Path;

use ostler_detect::{DetectionQuery, DetectionTable, NoFiles};
use ostler_model::{ByteString, Command};
use ostler_policy::{CommandContext, PolicyDecision, RuleSet, RuleSource, RuleTier};

const POSITIVES: &str = include_str!("corpus/positives.txt");
/// How many answers are compared at least.
const LEAST: usize = 2_000;
/// Ways to run a command that rules and detection both see through.
const WRAPPINGS: [&str; 17] = [
    "{}",
    "env A=b {}",
    "nohup {} &",
    "timeout -k 5 60s {}",
    "sudo -E {}",
    "time {}",
    "nice -n 5 stdbuf -oL {}",
    "cross-env A=b {}",
    "dotenv -e .env -- {}",
    "direnv exec . {}",
    "cd web && {} || exit 1",
    "({}) > log 2>&1",
    "{ {}; }",
    "export X=1; {} | tee log",
    "exec {} # now",
    "xvfb-run -a {}",
    "chpst -u x {}",
];

fn script(text: &str) -> Command {
    Command::Shell {
        shell: ByteString::from("/bin/sh"),
        script: ByteString::from(text),
    }
}

/// A policy that allows everything except for one program.
fn denying(program: &str) -> RuleSet {
    let rules = format!(
        "default = \"allow\"\n[[rule]]\nid = \"no\"\nprefix = ['{program}']\ndecision = \"deny\"\n\
         justification = \"a test\"\nmatch = ['{program} x']\nnot_match = [\"true\"]\n"
    );
    RuleSet::load(&[RuleSource::new(RuleTier::User, "test", rules)]).expect("a rule")
}

/// Whether a program is named by other means than a wrapper: a module of Python, a file or the name
/// of a package, or `yarn NAME`, which is a script or a program by what the package says.
fn is_module(command: &str, program: &str) -> bool {
    let by_module = [
        "python",
        "pypy",
        "py ",
        "coverage",
        "node_modules/",
        "yarn ",
        "pnpm ",
    ];
    let names_it = |word: &str| word.rsplit('/').next() == Some(program);
    let is_package = command.contains('@');
    is_package
        || by_module.iter().any(|it| command.contains(it))
        || !command.split([' ', '\'', '"', ';']).any(names_it)
}

#[test]
fn the_program_of_a_service_is_one_that_rules_judge() {
    let cwd = ByteString::from("/srv/project");
    let mut policies: BTreeMap<String, RuleSet> = BTreeMap::new();
    let mut compared = 0;
    let mut missed = Vec::new();
    let commands = POSITIVES.lines().filter_map(|line| line.split_once(" | "));
    for (_, command) in commands {
        for wrapping in WRAPPINGS {
            let text = wrapping.replace("{}", command);
            let command = script(&text);
            let query = DetectionQuery {
                command: &command,
                cwd: Path::new("/srv/project"),
                env: &[],
            };
            let Some(service) = DetectionTable::shipped().detect(query, &NoFiles) else {
                continue;
            };
            let first = service.normalised.split(' ').next().unwrap_or_default();
            let program = first.rsplit('/').next().unwrap_or_default().to_owned();
            if is_module(&text, &program) {
                continue;
            }
            compared += 1;
            let policy = policies.entry(program.clone());
            let policy = policy.or_insert_with_key(|program| denying(program));
            let verdict = policy.evaluate(&CommandContext::new(&command, &cwd));
            if verdict.decision != PolicyDecision::Deny {
                missed.push(format!("{text:?}: {program}: {verdict}"));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(compared >= LEAST, "{compared}");
}
