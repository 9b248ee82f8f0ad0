//! Builds the environment of a command.

use ostler_model::{ByteString, IsolationLevel};

use super::{isolation_level, secrets};
use crate::request::StartRequest;
use crate::settings::{BASE_ENVIRONMENT, Settings};

/// Builds the whole environment: the kept part of the client's, then the request's variables. With
/// an allow list, `PATH` is the trusted one, so that programs which look up others find those; also
/// where no client provided an environment. The terminal variables describe the engine's terminal,
/// not the client's. In a container nothing of the client's environment is kept, and the search path
/// is the image's.
#[must_use]
pub fn build(
    settings: &Settings,
    request: &StartRequest,
    inherit: bool,
) -> Vec<(ByteString, ByteString)> {
    let in_container = isolation_level::runs_in_container(&settings.isolation, request);
    let client_env: &[(ByteString, ByteString)] = if in_container {
        &[]
    } else if request.base_env.is_empty() {
        &settings.base_env
    } else {
        &request.base_env
    };
    let is_restricted = is_restricted(settings, request);
    let mut env: Vec<(ByteString, ByteString)> =
        Vec::with_capacity(client_env.len() + request.options.set_env.len());
    for (name, value) in client_env {
        let inherited = inherit && !(is_restricted && can_change_code(name.as_bytes()));
        let is_wanted = inherited || is_kept(settings, name.as_bytes());
        if is_wanted
            && is_passable(name, value)
            && !secrets::is_secret_variable(settings, name.as_bytes())
        {
            set_variable(&mut env, name, value);
        }
    }
    if request.options.pty.is_some() {
        env.retain(|(name, _)| !is_client_terminal_variable(name.as_bytes()));
        set_variable(
            &mut env,
            &ByteString::from("TERM"),
            &ByteString::from(TERM_VALUE),
        );
    }
    if isolation_level::effective_level(&settings.isolation, request)
        .is_ok_and(|level| level >= IsolationLevel::High)
    {
        // The sandbox has a private /tmp; the client's directory does not exist there.
        env.retain(|(name, _)| name.as_bytes() != b"TMPDIR");
    }
    for (name, value) in &request.options.set_env {
        set_variable(&mut env, name, value);
    }
    let lacks_path = client_env.is_empty() && value(&env, b"PATH").is_none();
    if !in_container && (is_restricted || lacks_path) {
        set_variable(&mut env, &ByteString::from("PATH"), &settings.trusted_path);
    }
    env
}

/// The terminal type of the engine's emulator.
pub const TERM_VALUE: &str = "xterm-256color";

/// Whether a variable describes the client's terminal.
fn is_client_terminal_variable(name: &[u8]) -> bool {
    matches!(name, b"TERM" | b"TERMCAP" | b"COLUMNS" | b"LINES")
}

/// Whether an allow list applies: that of the settings, or of the request.
#[must_use]
pub const fn is_restricted(settings: &Settings, request: &StartRequest) -> bool {
    settings.allowed_commands.is_some() || request.options.allowed.is_some()
}

/// The value of a variable.
#[must_use]
pub fn value<'a>(env: &'a [(ByteString, ByteString)], name: &[u8]) -> Option<&'a ByteString> {
    env.iter()
        .find(|(known, _)| known.as_bytes() == name)
        .map(|(_, value)| value)
}

fn is_kept(settings: &Settings, name: &[u8]) -> bool {
    name.starts_with(b"LC_")
        || BASE_ENVIRONMENT.iter().any(|kept| kept.as_bytes() == name)
        || settings
            .base_env_names
            .iter()
            .any(|kept| kept.as_bytes() == name)
}

/// Whether the kernel accepts it; a client may send anything.
fn is_passable(name: &ByteString, value: &ByteString) -> bool {
    !name.is_empty() && !name.as_bytes().contains(&b'=') && !name.has_nul() && !value.has_nul()
}

/// Sets a variable, or replaces its value.
pub(super) fn set_variable(
    env: &mut Vec<(ByteString, ByteString)>,
    name: &ByteString,
    value: &ByteString,
) {
    match env.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => old.clone_from(value),
        None => env.push((name.clone(), value.clone())),
    }
}

/// Variables that make a listed program run code of the caller's choosing.
const CODE_VARIABLES: [&str; 40] = [
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "SHELL",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "SSH_ASKPASS",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "HOSTALIASES",
    "PERL5LIB",
    "PERL5OPT",
    "PERL5DB",
    "PERLLIB",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "RUBYLIB",
    "RUBYOPT",
    "NODE_OPTIONS",
    "NODE_PATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "MAKEFLAGS",
    "TAR_OPTIONS",
    "RSYNC_RSH",
    "HOME",
];
/// Prefixes of further such variables.
const CODE_PREFIXES: [&str; 7] = [
    "LD_",
    "DYLD_",
    "GIT_",
    "BASH_FUNC_",
    "GLIBC_",
    "MALLOC_",
    "npm_",
];

/// Whether a variable can change which code a program runs.
#[must_use]
pub fn can_change_code(name: &[u8]) -> bool {
    CODE_VARIABLES.iter().any(|known| known.as_bytes() == name)
        || CODE_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix.as_bytes()))
}
