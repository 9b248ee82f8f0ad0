//! The list.

use super::Guard::{Protected, Told};
use super::Test::{GitCommon, GitConfig, GitHook, GitLink, GitTodo, Presence};
use super::{Guard, Line, Test};

/// Path, what is done about it, what makes a difference; reader, what that does. The first that
/// fits a path counts.
type Row = (&'static str, Guard, Test, &'static str, &'static str);

#[rustfmt::skip]
const ROWS: [Row; 80] = [
    ("/.ostler", Protected, Presence, "ostler", "holds the rules of the workspace"),
    ("/ostler.toml", Protected, Presence, "ostler", "declares services that are started"),
    (".git", Told, GitLink, "git", "takes the repository from another place"),
    (".git/hooks", Protected, GitHook, "git", "is run by git's commands"),
    (".git/config", Protected, GitConfig, "git", "is its configuration, of every command"),
    (".git/config.worktree", Protected, GitConfig, "git", "is its configuration, of every command"),
    (".git/commondir", Told, GitCommon, "git", "takes hooks and configuration from another directory"),
    (".git/rebase-merge/git-rebase-todo", Told, GitTodo, "git", "is run by the next git rebase --continue"),
    (".hg/hgrc", Told, Presence, "hg", "is its configuration, with hooks"),
    (".hg/hgrc-not-shared", Told, Presence, "hg", "is its configuration, with hooks"),
    (".hg/sharedpath", Told, Presence, "hg", "takes the repository from another place"),
    (".jj/repo/config.toml", Told, Presence, "jj", "is its configuration, with programs"),
    (".husky", Told, Presence, "git", "holds hooks, as husky sets them up"),
    (".githooks", Told, Presence, "git", "holds hooks, as core.hooksPath often says"),
    (".pre-commit-config.yaml", Told, Presence, "pre-commit", "says what its git hooks run"),
    ("lefthook.y*", Told, Presence, "lefthook", "says what its git hooks run"),
    ("lefthook-local.y*", Told, Presence, "lefthook", "says what its git hooks run"),
    (".lefthook*", Told, Presence, "lefthook", "says what its git hooks run"),
    (".overcommit.yml", Told, Presence, "overcommit", "says what its git hooks run"),
    (".lintstagedrc*", Told, Presence, "lint-staged", "says what a git hook runs"),
    (".envrc", Told, Presence, "direnv", "is run on entering the directory"),
    (".autoenv*", Told, Presence, "autoenv", "is run on entering the directory"),
    ("mise.toml", Told, Presence, "mise", "has hooks and variables for the directory"),
    (".mise.toml", Told, Presence, "mise", "has hooks and variables for the directory"),
    ("mise.local.toml", Told, Presence, "mise", "has hooks and variables for the directory"),
    (".mise.local.toml", Told, Presence, "mise", "has hooks and variables for the directory"),
    ("mise/config*", Told, Presence, "mise", "has hooks and variables for the directory"),
    (".mise/config*", Told, Presence, "mise", "has hooks and variables for the directory"),
    (".config/mise*", Told, Presence, "mise", "has hooks and variables for the directory"),
    (".tool-versions", Told, Presence, "asdf, mise", "can name a program by its path"),
    (".vscode/tasks.json", Told, Presence, "VS Code", "can run when the folder is opened"),
    (".vscode/settings.json", Told, Presence, "VS Code", "names programs that extensions run"),
    (".vscode/launch.json", Told, Presence, "VS Code", "says what a debugger runs"),
    (".vscode/mcp.json", Told, Presence, "VS Code", "names servers that are started"),
    ("*.code-workspace", Told, Presence, "VS Code", "holds tasks and settings"),
    (".idea", Told, Presence, "JetBrains IDEs", "holds run configurations, startup tasks and file watchers"),
    (".run", Told, Presence, "JetBrains IDEs", "holds run configurations"),
    (".fleet", Told, Presence, "Fleet", "holds run configurations and settings"),
    (".zed", Told, Presence, "Zed", "names programs that the editor runs"),
    (".helix", Told, Presence, "Helix", "names programs that the editor runs"),
    (".externalToolBuilders", Told, Presence, "Eclipse", "is run with every build"),
    (".exrc", Told, Presence, "vi, vim, nvim", "is run when the editor starts there"),
    (".vimrc", Told, Presence, "vim", "is run when the editor starts there"),
    ("_vimrc", Told, Presence, "vim", "is run when the editor starts there"),
    (".nvimrc", Told, Presence, "nvim", "is run when the editor starts there"),
    (".nvim.lua", Told, Presence, "nvim", "is run when the editor starts there"),
    (".lvimrc", Told, Presence, "vim", "is run when the editor starts there"),
    (".dir-locals.el", Told, Presence, "Emacs", "sets variables and code of every buffer"),
    (".dir-locals-2.el", Told, Presence, "Emacs", "sets variables and code of every buffer"),
    (".ycm_extra_conf.py", Told, Presence, "YouCompleteMe", "is run when a file is opened"),
    (".devcontainer", Told, Presence, "Dev Containers", "runs commands on the host when it is opened"),
    (".devcontainer.json", Told, Presence, "Dev Containers", "runs commands on the host when it is opened"),
    (".cargo/config", Told, Presence, "cargo", "names wrappers, runners and linkers of every build"),
    (".cargo/config.toml", Told, Presence, "cargo", "names wrappers, runners and linkers of every build"),
    ("rust-toolchain", Told, Presence, "rustup", "can name a compiler by its path"),
    ("rust-toolchain.toml", Told, Presence, "rustup", "can name a compiler by its path"),
    (".npmrc", Told, Presence, "npm", "names shells, programs and registries"),
    (".yarnrc", Told, Presence, "yarn", "names the program that yarn runs in its place"),
    (".yarnrc.yml", Told, Presence, "yarn", "names the program that yarn runs in its place, and plugins"),
    (".yarn/releases", Told, Presence, "yarn", "is run in yarn's place"),
    (".yarn/plugins", Told, Presence, "yarn", "is run with every command"),
    (".pnpmfile.cjs", Told, Presence, "pnpm", "is run with every command"),
    ("bunfig.toml", Told, Presence, "bun", "names scripts that are loaded first"),
    (".gdbinit", Told, Presence, "gdb", "is run when the debugger starts there"),
    (".lldbinit", Told, Presence, "lldb", "is run when the debugger starts there"),
    (".pdbrc", Told, Presence, "pdb", "is run when the debugger starts there"),
    (".perldb", Told, Presence, "perl", "is run when the debugger starts there"),
    (".Rprofile", Told, Presence, "R", "is run when it starts there"),
    (".ghci", Told, Presence, "ghci", "is run when it starts there"),
    (".irbrc", Told, Presence, "irb", "is run when it starts there"),
    (".iex.exs", Told, Presence, "iex", "is run when it starts there"),
    (".ocamlinit", Told, Presence, "ocaml", "is run when it starts there"),
    (".octaverc", Told, Presence, "octave", "is run when it starts there"),
    (".claude/settings*", Told, Presence, "Claude Code", "has hooks that are run"),
    (".claude/hooks", Told, Presence, "Claude Code", "is run where its settings say so"),
    (".mcp.json", Told, Presence, "Claude Code", "names servers that are started"),
    (".cursor/mcp.json", Told, Presence, "Cursor", "names servers that are started"),
    (".cursor/hooks*", Told, Presence, "Cursor", "is run by the agent"),
    (".gemini/settings.json", Told, Presence, "Gemini CLI", "has hooks and servers that are started"),
    (".codex/config.toml", Told, Presence, "Codex", "names programs and servers that are started"),
];

/// Everything that tools run or obey unasked.
pub const LINES: [Line; ROWS.len()] = {
    let mut lines = [line(ROWS[0]); ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        lines[at] = line(ROWS[at]);
        at += 1;
    }
    lines
};

const fn line((path, guard, test, reader, why): Row) -> Line {
    Line {
        path,
        reader,
        why,
        guard,
        test,
    }
}

/// The last name of each.
pub(super) static LASTS: [&[u8]; ROWS.len()] = {
    let mut lasts: [&[u8]; ROWS.len()] = [b""; ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        lasts[at] = last(ROWS[at].0.as_bytes());
        at += 1;
    }
    lasts
};

const fn last(path: &[u8]) -> &[u8] {
    let mut at = path.len();
    while at > 0 && path[at - 1] != b'/' {
        at -= 1;
    }
    path.split_at(at).1
}
