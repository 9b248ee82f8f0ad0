//! Programs that run those of a package or of an environment (data).

use super::wrapper::{FirstWord, Wrapper, WrapperClass};

const fn launcher(words: &'static [&'static str]) -> Wrapper<'static> {
    Wrapper::new(words, WrapperClass::Launcher)
}

const fn creator(words: &'static [&'static str]) -> Wrapper<'static> {
    Wrapper {
        first_word: FirstWord::Creation,
        keeps_options: true,
        ..launcher(words)
    }
}

const fn npm_creator(words: &'static [&'static str]) -> Wrapper<'static> {
    Wrapper {
        flags: &NPM_FLAGS,
        valued: &["-w", "--workspace", "--loglevel"],
        directories: &["--prefix"],
        ..creator(words)
    }
}

/// Options without a value that leave the program as it is, of npm.
const NPM_FLAGS: [&str; 7] = [
    "-y",
    "--yes",
    "--no",
    "-q",
    "--quiet",
    "--offline",
    "--prefer-offline",
];
/// The same of bun.
const BUN_FLAGS: [&str; 3] = ["--bun", "--silent", "--verbose"];
/// The same of uv.
const UV_FLAGS: [&str; 13] = [
    "-q",
    "--quiet",
    "-v",
    "--verbose",
    "--frozen",
    "--locked",
    "--no-sync",
    "--offline",
    "--exact",
    "--dev",
    "--no-dev",
    "--all-extras",
    "--all-groups",
];
/// Launchers that join the words of the command to a script for a shell.
pub(super) const SCRIPT_LAUNCHERS: [&str; 5] =
    ["cross-env-shell", "ddev", "hatch", "heroku", "pixi"];

/// Launchers, in the order they are tried.
pub(super) const LAUNCHERS: [Wrapper<'static>; 64] = [
    Wrapper {
        assigns: true,
        ..launcher(&["cross-env"])
    },
    Wrapper {
        assigns: true,
        ..launcher(&["cross-env-shell"])
    },
    Wrapper {
        valued: &["-f", "--file"],
        ..launcher(&["dotenv", "run"])
    },
    Wrapper {
        valued: &["-e", "-f", "--file"],
        other_valued: &["-v", "-c"],
        ..launcher(&["dotenv"])
    },
    Wrapper {
        valued: &["-fk", "-f", "--env", "--env-file"],
        ..launcher(&["dotenvx", "run"])
    },
    Wrapper {
        valued: &["-f", "-e", "-r", "--file", "--environments", "--rc-file"],
        ..launcher(&["env-cmd"])
    },
    Wrapper {
        operands: 1,
        ..launcher(&["direnv", "exec"])
    },
    Wrapper {
        directories: &["-C", "--cd"],
        needs_dashes: true,
        ..launcher(&["mise", "exec"])
    },
    Wrapper {
        directories: &["-C", "--cd"],
        needs_dashes: true,
        ..launcher(&["mise", "x"])
    },
    launcher(&["asdf", "exec"]),
    launcher(&["rbenv", "exec"]),
    launcher(&["pyenv", "exec"]),
    launcher(&["nodenv", "exec"]),
    Wrapper {
        valued: &["--using"],
        ..launcher(&["fnm", "exec"])
    },
    Wrapper {
        valued: &["--node", "--npm", "--yarn"],
        ..launcher(&["volta", "run"])
    },
    launcher(&["corepack"]),
    Wrapper {
        needs_dashes: true,
        ..launcher(&["devbox", "run"])
    },
    Wrapper {
        other_valued: &["-c", "--command"],
        needs_dashes: true,
        ..launcher(&["nix", "develop"])
    },
    Wrapper {
        needs_dashes: true,
        ..launcher(&["doppler", "run"])
    },
    Wrapper {
        needs_dashes: true,
        ..launcher(&["op", "run"])
    },
    Wrapper {
        needs_dashes: true,
        ..launcher(&["infisical", "run"])
    },
    Wrapper {
        operands: 1,
        ..launcher(&["aws-vault", "exec"])
    },
    Wrapper {
        needs_dashes: true,
        ..launcher(&["chamber", "exec"])
    },
    Wrapper {
        valued: &["-e", "-f", "--env", "--procfile"],
        ..launcher(&["foreman", "run"])
    },
    Wrapper {
        valued: &["-e", "--env"],
        ..launcher(&["honcho", "run"])
    },
    launcher(&["heroku", "local:run"]),
    Wrapper {
        valued: &["--traces_exporter", "--metrics_exporter", "--service_name"],
        ..launcher(&["opentelemetry-instrument"])
    },
    launcher(&["ddtrace-run"]),
    launcher(&["newrelic-admin", "run-program"]),
    Wrapper {
        flags: &NPM_FLAGS,
        valued: &["-w", "--workspace", "--loglevel"],
        other_valued: &["-p", "--package"],
        directories: &["--prefix"],
        first_word: FirstWord::Package,
        ..launcher(&["npx"])
    },
    Wrapper {
        flags: &NPM_FLAGS,
        valued: &["-w", "--workspace", "--loglevel"],
        other_valued: &["-p", "--package"],
        directories: &["--prefix"],
        first_word: FirstWord::Package,
        keeps_options: true,
        ..launcher(&["npm", "exec"])
    },
    Wrapper {
        flags: &NPM_FLAGS,
        valued: &["-w", "--workspace", "--loglevel"],
        other_valued: &["-p", "--package"],
        directories: &["--prefix"],
        first_word: FirstWord::Package,
        keeps_options: true,
        ..launcher(&["npm", "x"])
    },
    npm_creator(&["npm", "init"]),
    npm_creator(&["npm", "create"]),
    npm_creator(&["npm", "innit"]),
    creator(&["pnpm", "create"]),
    creator(&["yarn", "create"]),
    creator(&["bun", "create"]),
    Wrapper {
        valued: &["--filter", "-F"],
        flags: &["-s", "--silent"],
        directories: &["-C", "--dir"],
        first_word: FirstWord::Package,
        ..launcher(&["pnpm", "exec"])
    },
    Wrapper {
        other_valued: &["--package"],
        flags: &["-s", "--silent"],
        directories: &["-C", "--dir"],
        first_word: FirstWord::Package,
        ..launcher(&["pnpm", "dlx"])
    },
    Wrapper {
        first_word: FirstWord::Package,
        ..launcher(&["pnpx"])
    },
    Wrapper {
        flags: &["-q", "--quiet"],
        other_valued: &["-p", "--package"],
        first_word: FirstWord::Package,
        ..launcher(&["yarn", "dlx"])
    },
    Wrapper {
        first_word: FirstWord::Package,
        ..launcher(&["yarn", "exec"])
    },
    Wrapper {
        flags: &BUN_FLAGS,
        first_word: FirstWord::Package,
        ..launcher(&["bunx"])
    },
    Wrapper {
        flags: &BUN_FLAGS,
        first_word: FirstWord::Package,
        ..launcher(&["bun", "x"])
    },
    launcher(&["na"]),
    Wrapper {
        first_word: FirstWord::Package,
        ..launcher(&["nlx"])
    },
    Wrapper {
        flags: &["-q", "--quiet", "-v", "-n", "--no-interaction"],
        directories: &["-C", "--directory", "-P", "--project"],
        ..launcher(&["poetry", "run"])
    },
    Wrapper {
        flags: &UV_FLAGS,
        valued: &[
            "--extra",
            "--group",
            "--only-group",
            "--package",
            "--refresh-package",
        ],
        other_valued: &[
            "--with",
            "--with-editable",
            "--with-requirements",
            "--python",
            "-p",
            "--env-file",
            "--index",
            "--project",
        ],
        directories: &["--directory"],
        ..launcher(&["uv", "run"])
    },
    Wrapper {
        flags: &["-q", "--quiet", "-v", "--verbose", "--offline"],
        other_valued: &["--from", "--with", "--python", "-p"],
        first_word: FirstWord::Package,
        ..launcher(&["uvx"])
    },
    Wrapper {
        flags: &["-q", "--quiet", "-v", "--verbose", "--offline"],
        other_valued: &["--from", "--with", "--python", "-p"],
        first_word: FirstWord::Package,
        ..launcher(&["uv", "tool", "run"])
    },
    Wrapper {
        flags: &["--no-cache", "--quiet", "--verbose"],
        other_valued: &["--spec", "--python"],
        first_word: FirstWord::Package,
        ..launcher(&["pipx", "run"])
    },
    launcher(&["pipenv", "run"]),
    Wrapper {
        valued: &["-e", "--env"],
        ..launcher(&["hatch", "run"])
    },
    Wrapper {
        valued: &["-e", "--env"],
        ..launcher(&["hatch", "env", "run"])
    },
    launcher(&["rye", "run"]),
    Wrapper {
        directories: &["-p", "--project"],
        ..launcher(&["pdm", "run"])
    },
    Wrapper {
        valued: &["-e", "--environment"],
        ..launcher(&["pixi", "run"])
    },
    Wrapper {
        valued: &["-n", "--name"],
        other_valued: &["-p", "--prefix"],
        directories: &["--cwd"],
        ..launcher(&["conda", "run"])
    },
    Wrapper {
        valued: &["-n", "--name"],
        other_valued: &["-p", "--prefix"],
        ..launcher(&["mamba", "run"])
    },
    Wrapper {
        valued: &["-n", "--name"],
        other_valued: &["-p", "--prefix"],
        ..launcher(&["micromamba", "run"])
    },
    launcher(&["bundle", "exec"]),
    launcher(&["symfony", "run"]),
    launcher(&["ddev", "exec"]),
];

/// Programs whose packages are called otherwise.
const PACKAGES: [(&str, &str); 15] = [
    ("@angular/cli", "ng"),
    ("@nestjs/cli", "nest"),
    ("@vue/cli-service", "vue-cli-service"),
    ("@11ty/eleventy", "eleventy"),
    ("@rspack/cli", "rspack"),
    ("@rsbuild/core", "rsbuild"),
    ("@tauri-apps/cli", "tauri"),
    ("@ionic/cli", "ionic"),
    ("@tailwindcss/cli", "tailwindcss"),
    ("@stoplight/prism-cli", "prism"),
    ("@playwright/mcp", "playwright-mcp"),
    ("@web/dev-server", "wds"),
    ("@docusaurus/core", "docusaurus"),
    ("netlify-cli", "netlify"),
    ("firebase-tools", "firebase"),
];

/// The program of a package: `vite@5` is `vite`, `@angular/cli` is `ng`.
#[must_use]
pub fn package_program(package: &str) -> &str {
    let (name, _) = split_version(package);
    let entry = PACKAGES.iter().find(|(known, _)| *known == name);
    entry.map_or(name, |(_, program)| *program)
}

/// The program that makes what is named: `vite` is made by `create-vite`, `@scope/app` by
/// `@scope/create-app`, `@scope` by `@scope/create` (npm-init(1)).
pub(super) fn creator_program(name: &str) -> String {
    let (name, _) = split_version(name);
    match name.split_once('/') {
        Some((scope, name)) if scope.starts_with('@') => format!("{scope}/create-{name}"),
        None if name.starts_with('@') => format!("{name}/create"),
        Some(_) | None => format!("create-{name}"),
    }
}

/// Splits `vite@5` and `@scope/name@5` into the name and the version.
pub(super) fn split_version(package: &str) -> (&str, Option<&str>) {
    match package.rsplit_once('@') {
        Some((name, version)) if !name.is_empty() => (name, Some(version)),
        Some(_) | None => (package, None),
    }
}
