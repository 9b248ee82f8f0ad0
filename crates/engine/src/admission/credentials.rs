//! Credential stores below a home directory: isolation level high never exposes them, whichever
//! directory above them a setting or the search path makes visible.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ostler_sys::regular_file;

/// Credential stores below a home directory. A `*` in the last component matches any characters; a
/// directory includes everything in it.
pub const STORES: &[&str] = &[
    // Keys, keyrings and password managers.
    ".ssh",
    ".gnupg",
    ".pki",
    ".password-store",
    ".local/share/gopass",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/python_keyring",
    ".gnome2/keyrings",
    ".config/op",
    ".config/Bitwarden*",
    ".config/keepassxc",
    ".config/1Password",
    ".config/age",
    ".config/sops",
    ".vault-token",
    ".Xauthority",
    ".ICEauthority",
    // Credentials of network tools.
    ".netrc",
    "_netrc",
    ".authinfo*",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/rclone",
    ".rclone.conf",
    ".s3cfg",
    ".boto",
    ".msmtprc",
    ".mbsyncrc",
    ".wgetrc",
    ".curlrc",
    // Clouds and clusters.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/scw",
    ".config/linode-cli",
    ".oci",
    ".bluemix",
    ".fly/config.yml",
    ".kube",
    ".config/helm",
    ".docker/config.json",
    ".docker/contexts",
    ".config/containers/auth.json",
    ".local/share/containers",
    ".terraform.d/credentials*",
    ".terraformrc",
    ".pulumi/credentials.json",
    ".config/heroku",
    ".config/netlify",
    ".local/share/com.vercel.cli",
    ".config/.wrangler",
    ".wrangler",
    ".config/stripe",
    // Package registries.
    ".npmrc",
    ".yarnrc*",
    ".pypirc",
    ".pip",
    ".config/pip",
    ".config/pypoetry",
    ".config/uv",
    ".local/share/uv/credentials",
    ".cargo/credentials*",
    ".gem/credentials",
    ".local/share/gem/credentials",
    ".bundle/config",
    ".config/composer/auth.json",
    ".composer/auth.json",
    ".m2/settings*.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet",
    ".config/NuGet",
    ".hex/hex.config",
    ".condarc",
    ".config/conda",
    ".huggingface",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".kaggle",
    // Databases.
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".mongorc.js",
    ".config/pgcli",
    // Browsers and mail.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome*",
    ".config/chromium",
    ".config/microsoft-edge*",
    ".config/BraveSoftware",
    ".config/vivaldi*",
    ".config/opera*",
    ".local/share/evolution",
    "snap/firefox",
    "snap/chromium",
    // Histories, which may contain mistyped passwords.
    ".*_history",
    ".histfile",
    ".lesshst",
    ".viminfo",
    ".local/share/fish/fish_history*",
    ".local/share/atuin",
    ".local/share/nvim/shada",
    ".local/state/*history",
    // Agents and assistants.
    ".claude*",
    ".config/claude*",
    ".config/Claude*",
    ".codex",
    ".gemini",
    ".cursor",
    ".config/Cursor",
    ".config/Code",
    ".vscode-server/data",
    ".config/github-copilot",
    ".copilot",
    ".aider*",
    ".continue",
    ".config/goose",
    ".local/share/opencode",
    ".config/opencode",
    ".config/openai",
    ".openai",
    ".config/ostler",
];

/// Git configuration files, which hold an identity, and sometimes credentials.
pub const GIT_FILES: [&str; 2] = [".gitconfig", ".config/git/config"];

/// The most bytes of a git configuration that are examined; a larger one is hidden.
const GIT_BYTES: u64 = 256 * 1024;
/// The most entries of a directory that are compared with a pattern.
const ENTRIES_MAX: usize = 10_000;

/// Whether a path below a home directory is a credential store, or lies in one.
#[must_use]
pub fn is_within(path: &Path) -> bool {
    STORES.iter().any(|store| covers(Path::new(store), path))
}

/// Whether a path matches a pattern, or lies below a match.
fn covers(pattern: &Path, path: &Path) -> bool {
    let mut parts = path.components();
    pattern.components().all(|wanted| {
        parts
            .next()
            .is_some_and(|part| matches_component(wanted.as_os_str(), part.as_os_str()))
    })
}

/// Whether a name matches a component, which may contain one `*`.
fn matches_component(pattern: &OsStr, name: &OsStr) -> bool {
    let (wanted, name) = (pattern.as_bytes(), name.as_bytes());
    let Some(star) = wanted.iter().position(|byte| *byte == b'*') else {
        return wanted == name;
    };
    let (before, after) = (&wanted[..star], &wanted[star + 1..]);
    name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
}

/// The existing credential stores below a home directory, and git configuration files that contain
/// credentials.
#[must_use]
pub fn find_stores(home: &Path) -> Vec<PathBuf> {
    let stores = STORES.iter().flat_map(|store| expand_store(home, store));
    let git = GIT_FILES.iter().map(|file| home.join(file));
    stores
        .chain(git.filter(|file| file_has_login(file)))
        .collect()
}

fn expand_store(home: &Path, store: &str) -> Vec<PathBuf> {
    let path = home.join(store);
    if !store.contains('*') {
        let is_there = path.symlink_metadata().is_ok();
        return is_there.then_some(path).into_iter().collect();
    }
    let (Some(above), Some(wanted)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    let entries = entries.take(ENTRIES_MAX);
    let named = entries.filter(|entry| matches_component(wanted, &entry.file_name()));
    named.map(|entry| entry.path()).collect()
}

/// Whether a git configuration file contains credentials. One that cannot be read completely, or at
/// once, counts as containing them; one that this user may not read does not.
fn file_has_login(file: &Path) -> bool {
    match regular_file::read(file, GIT_BYTES) {
        Ok(text) => text.len() as u64 > GIT_BYTES || has_login(&text),
        Err(error) => matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::Other
        ),
    }
}

/// Parts of keys and values that carry credentials: `http.extraHeader`, `github.token`, helpers
/// with a password in their command, cookies, keys.
const LOGIN_WORDS: [&str; 10] = [
    "extraheader",
    "authorization",
    "token",
    "password",
    "passwd",
    "secret",
    "cookie",
    "sslkey",
    "smtppass",
    "apikey",
];

/// Whether a git configuration contains credentials: one of the words, or a URL with a user.
#[must_use]
pub fn has_login(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    // A continued line counts as one. The helper of a keyring contains no credentials.
    let text = text.replace("\\\n", "").replace('"', "");
    let text = text.replace("libsecret", "");
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.starts_with(['#', ';']))
        .any(|line| LOGIN_WORDS.iter().any(|word| line.contains(word)) || has_url_user(line))
}

/// Whether a URL has a user before its host, `https://me:key@host`, other than `git`.
fn has_url_user(line: &str) -> bool {
    line.split("://").skip(1).any(|rest| {
        let end = rest.find(['/', ' ', '\t', ']']).unwrap_or(rest.len());
        let user = rest[..end].split_once('@').map(|(user, _)| user);
        user.is_some_and(|user| user != "git")
    })
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
