//! The table of autorun files.

use super::AutorunGuard::{Protected, Reported};
use super::AutorunTest::{GitCommon, GitConfig, GitHook, GitLink, GitTodo, Presence};
use super::{AutorunGuard, AutorunRule, AutorunTest};

/// Path, guard, test; reader, effect. The first row that matches a path counts.
type RuleRow = (
    &'static str,
    AutorunGuard,
    AutorunTest,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const ROWS: [RuleRow; 80] = [
    ("/.ostler", Protected, Presence, "ostler", "holds the rules of the workspace"),
    ("/ostler.toml", Protected, Presence, "ostler", "declares services that are started"),
    (".git", Reported, GitLink, "git", "takes the repository from another place"),
    (".git/hooks", Protected, GitHook, "git", "is run by git's commands"),
    (".git/config", Protected, GitConfig, "git", "is its configuration, of every command"),
    (".git/config.worktree", Protected, GitConfig, "git", "is its configuration, of every command"),
    (".git/commondir", Reported, GitCommon, "git", "takes hooks and configuration from another directory"),
    (".git/rebase-merge/git-rebase-todo", Reported, GitTodo, "git", "is run by the next git rebase --continue"),
    (".hg/hgrc", Reported, Presence, "hg", "is its configuration, with hooks"),
    (".hg/hgrc-not-shared", Reported, Presence, "hg", "is its configuration, with hooks"),
    (".hg/sharedpath", Reported, Presence, "hg", "takes the repository from another place"),
    (".jj/repo/config.toml", Reported, Presence, "jj", "is its configuration, with programs"),
    (".husky", Reported, Presence, "git", "holds hooks, as husky sets them up"),
    (".githooks", Reported, Presence, "git", "holds hooks, as core.hooksPath often says"),
    (".pre-commit-config.yaml", Reported, Presence, "pre-commit", "says what its git hooks run"),
    ("lefthook.y*", Reported, Presence, "lefthook", "says what its git hooks run"),
    ("lefthook-local.y*", Reported, Presence, "lefthook", "says what its git hooks run"),
    (".lefthook*", Reported, Presence, "lefthook", "says what its git hooks run"),
    (".overcommit.yml", Reported, Presence, "overcommit", "says what its git hooks run"),
    (".lintstagedrc*", Reported, Presence, "lint-staged", "says what a git hook runs"),
    (".envrc", Reported, Presence, "direnv", "is run on entering the directory"),
    (".autoenv*", Reported, Presence, "autoenv", "is run on entering the directory"),
    ("mise.toml", Reported, Presence, "mise", "has hooks and variables for the directory"),
    (".mise.toml", Reported, Presence, "mise", "has hooks and variables for the directory"),
    ("mise.local.toml", Reported, Presence, "mise", "has hooks and variables for the directory"),
    (".mise.local.toml", Reported, Presence, "mise", "has hooks and variables for the directory"),
    ("mise/config*", Reported, Presence, "mise", "has hooks and variables for the directory"),
    (".mise/config*", Reported, Presence, "mise", "has hooks and variables for the directory"),
    (".config/mise*", Reported, Presence, "mise", "has hooks and variables for the directory"),
    (".tool-versions", Reported, Presence, "asdf, mise", "can name a program by its path"),
    (".vscode/tasks.json", Reported, Presence, "VS Code", "can run when the folder is opened"),
    (".vscode/settings.json", Reported, Presence, "VS Code", "names programs that extensions run"),
    (".vscode/launch.json", Reported, Presence, "VS Code", "says what a debugger runs"),
    (".vscode/mcp.json", Reported, Presence, "VS Code", "names servers that are started"),
    ("*.code-workspace", Reported, Presence, "VS Code", "holds tasks and settings"),
    (".idea", Reported, Presence, "JetBrains IDEs", "holds run configurations, startup tasks and file watchers"),
    (".run", Reported, Presence, "JetBrains IDEs", "holds run configurations"),
    (".fleet", Reported, Presence, "Fleet", "holds run configurations and settings"),
    (".zed", Reported, Presence, "Zed", "names programs that the editor runs"),
    (".helix", Reported, Presence, "Helix", "names programs that the editor runs"),
    (".externalToolBuilders", Reported, Presence, "Eclipse", "is run with every build"),
    (".exrc", Reported, Presence, "vi, vim, nvim", "is run when the editor starts there"),
    (".vimrc", Reported, Presence, "vim", "is run when the editor starts there"),
    ("_vimrc", Reported, Presence, "vim", "is run when the editor starts there"),
    (".nvimrc", Reported, Presence, "nvim", "is run when the editor starts there"),
    (".nvim.lua", Reported, Presence, "nvim", "is run when the editor starts there"),
    (".lvimrc", Reported, Presence, "vim", "is run when the editor starts there"),
    (".dir-locals.el", Reported, Presence, "Emacs", "sets variables and code of every buffer"),
    (".dir-locals-2.el", Reported, Presence, "Emacs", "sets variables and code of every buffer"),
    (".ycm_extra_conf.py", Reported, Presence, "YouCompleteMe", "is run when a file is opened"),
    (".devcontainer", Reported, Presence, "Dev Containers", "runs commands on the host when it is opened"),
    (".devcontainer.json", Reported, Presence, "Dev Containers", "runs commands on the host when it is opened"),
    (".cargo/config", Reported, Presence, "cargo", "names wrappers, runners and linkers of every build"),
    (".cargo/config.toml", Reported, Presence, "cargo", "names wrappers, runners and linkers of every build"),
    ("rust-toolchain", Reported, Presence, "rustup", "can name a compiler by its path"),
    ("rust-toolchain.toml", Reported, Presence, "rustup", "can name a compiler by its path"),
    (".npmrc", Reported, Presence, "npm", "names shells, programs and registries"),
    (".yarnrc", Reported, Presence, "yarn", "names the program that yarn runs in its place"),
    (".yarnrc.yml", Reported, Presence, "yarn", "names the program that yarn runs in its place, and plugins"),
    (".yarn/releases", Reported, Presence, "yarn", "is run in yarn's place"),
    (".yarn/plugins", Reported, Presence, "yarn", "is run with every command"),
    (".pnpmfile.cjs", Reported, Presence, "pnpm", "is run with every command"),
    ("bunfig.toml", Reported, Presence, "bun", "names scripts that are loaded first"),
    (".gdbinit", Reported, Presence, "gdb", "is run when the debugger starts there"),
    (".lldbinit", Reported, Presence, "lldb", "is run when the debugger starts there"),
    (".pdbrc", Reported, Presence, "pdb", "is run when the debugger starts there"),
    (".perldb", Reported, Presence, "perl", "is run when the debugger starts there"),
    (".Rprofile", Reported, Presence, "R", "is run when it starts there"),
    (".ghci", Reported, Presence, "ghci", "is run when it starts there"),
    (".irbrc", Reported, Presence, "irb", "is run when it starts there"),
    (".iex.exs", Reported, Presence, "iex", "is run when it starts there"),
    (".ocamlinit", Reported, Presence, "ocaml", "is run when it starts there"),
    (".octaverc", Reported, Presence, "octave", "is run when it starts there"),
    (".claude/settings*", Reported, Presence, "Claude Code", "has hooks that are run"),
    (".claude/hooks", Reported, Presence, "Claude Code", "is run where its settings say so"),
    (".mcp.json", Reported, Presence, "Claude Code", "names servers that are started"),
    (".cursor/mcp.json", Reported, Presence, "Cursor", "names servers that are started"),
    (".cursor/hooks*", Reported, Presence, "Cursor", "is run by the agent"),
    (".gemini/settings.json", Reported, Presence, "Gemini CLI", "has hooks and servers that are started"),
    (".codex/config.toml", Reported, Presence, "Codex", "names programs and servers that are started"),
];

/// All lines: every file that tools execute or obey unasked.
pub const RULES: [AutorunRule; ROWS.len()] = {
    let mut lines = [rule(ROWS[0]); ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        lines[at] = rule(ROWS[at]);
        at += 1;
    }
    lines
};

const fn rule((path, guard, test, reader, why): RuleRow) -> AutorunRule {
    AutorunRule {
        path,
        reader,
        why,
        guard,
        test,
    }
}

/// The last path component of each line.
pub(super) static LAST_COMPONENTS: [&[u8]; ROWS.len()] = {
    let mut lasts: [&[u8]; ROWS.len()] = [b""; ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        lasts[at] = last_component(ROWS[at].0.as_bytes());
        at += 1;
    }
    lasts
};

const fn last_component(path: &[u8]) -> &[u8] {
    let mut at = path.len();
    while at > 0 && path[at - 1] != b'/' {
        at -= 1;
    }
    path.split_at(at).1
}
