//! Test runners for JavaScript: options whose value names a file of code.

use super::InnerCommands;
use crate::word::CommandWord;

/// Options of a test runner that load the file they name. They cannot be abbreviated.
const LOADER_OPTIONS: [(&str, &[&str]); 3] = [
    (
        "jest",
        &[
            "-c",
            "--config",
            "--dependencyExtractor",
            "--env",
            "--filter",
            "--globalSetup",
            "--globalTeardown",
            "--haste",
            "--moduleDirectories",
            "--moduleNameMapper",
            "--modulePaths",
            "--preset",
            "--prettierPath",
            "--projects",
            "--reporters",
            "--resolver",
            "--rootDir",
            "--roots",
            "--runner",
            "--setupFiles",
            "--setupFilesAfterEnv",
            "--snapshotSerializers",
            "--test-runner",
            "--testEnvironment",
            "--testResultsProcessor",
            "--testRunner",
            "--testSequencer",
            "--transform",
            "--watchPlugins",
        ],
    ),
    (
        "vitest",
        &[
            "-c",
            "--config",
            "-r",
            "--root",
            "--api",
            "--browser",
            "--environment",
            "--execArgv",
            "--globalSetup",
            "--open",
            "--pool",
            "--reporter",
            "--runner",
            "--ui",
            "--workspace",
        ],
    ),
    (
        "mocha",
        &[
            "-r",
            "--require",
            "-R",
            "--reporter",
            "-u",
            "--ui",
            "-n",
            "--node-option",
            "--compilers",
            "--config",
            "--file",
            "--import",
            "--inspect",
            "--inspect-brk",
            "--loader",
            "--opts",
            "--package",
        ],
    ),
];
/// Values that name a built-in instead of a file.
const BUILT_IN_VALUES: [&str; 34] = [
    "bdd",
    "basic",
    "default",
    "doc",
    "dot",
    "exports",
    "forks",
    "github-actions",
    "hanging-process",
    "happy-dom",
    "jsdom",
    "json",
    "json-stream",
    "junit",
    "landing",
    "list",
    "markdown",
    "min",
    "node",
    "nyan",
    "progress",
    "qunit",
    "spec",
    "summary",
    "tap",
    "tap-flat",
    "tdd",
    "threads",
    "tree",
    "verbose",
    "vmForks",
    "vmThreads",
    "xunit",
    "blob",
];

/// Unresolved options of this kind; none where `name` is another program.
pub(super) fn analyze(name: &str, args: &[CommandWord]) -> Option<InnerCommands> {
    let (_, flags) = LOADER_OPTIONS.iter().find(|(known, _)| *known == name)?;
    let loads = args.iter().enumerate().find(|(at, word)| {
        let (flag, joined) = match word.text.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word.text.as_str(), None),
        };
        let next = args.get(at + 1).map(|it| it.text.as_str());
        let value = joined.or(next);
        flags.contains(&flag) && !value.is_some_and(|it| BUILT_IN_VALUES.contains(&it))
    });
    let unresolved = |(_, word): (usize, &CommandWord)| {
        InnerCommands::unresolved(format!("'{}' of '{name}'", word.text))
    };
    Some(loads.map(unresolved).unwrap_or_default())
}
