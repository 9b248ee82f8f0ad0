//! The kinds of values of settings.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ostler_http::webhook::WebhookUrl;
use ostler_journal::Durability;
use ostler_model::{Capability, Limits, NetworkAccess, PortForward};
use ostler_store::{AddressError, PostgresAddress, SchemaName};
use serde::Serialize;

use super::container;
use super::value_checks::{
    is_address, is_host_name, is_log_filter, is_origin, is_plain_absolute, is_program,
    is_relative_below, is_search_path, is_variable_name, port_range, url_prefix,
};

/// The most items of one list.
const LIST_ITEMS: usize = 1_000;
/// The longest retention, idle time or grace period in seconds: a hundred years.
const LONGEST_S: u64 = 100 * 366 * 24 * 60 * 60;

/// The tool profiles.
pub(crate) const TOOL_PROFILES: [&str; ostler_mcp::PROFILE_WORDS.len()] = ostler_mcp::PROFILE_WORDS;
const MIRROR_FORMATS: [&str; 3] = ["yaml", "avro", "jsonl"];
const POLICY_MODES: [&str; 4] = ["auto", "off", "default", "claude"];
const TOKEN_MODES: [&str; 2] = ["required", "off"];
const STRUCTURED: [&str; 3] = ["auto", "always", "never"];
const LEVELS: [&str; 4] = ["basic", "medium", "high", "container"];
const TASKS: [&str; 2] = ["auto", "off"];
pub(super) const LOG_LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// An absolute path of a directory.
    Directory,
    /// Program names or absolute paths, at least one.
    Programs,
    /// A WHATWG label or `auto`.
    Encoding,
    /// Absolute directories, separated by colons.
    SearchPath,
    /// Whole seconds, or `forever`.
    Retention,
    /// A number from 1.
    Count,
    /// A number of milliseconds.
    Millis,
    /// Names of environment variables.
    Names,
    /// The beginning of names of environment variables.
    VariablePrefix,
    /// true or false.
    Flag,
    /// A number of days from 1.
    Days,
    /// An export format that a mirror can have.
    Mirror,
    /// A number of seconds; 0 is never.
    IdleSeconds,
    /// Names of tool profiles.
    Tools,
    /// A log level or filter.
    LogFilter,
    /// An address of this machine.
    Host,
    /// A TCP port; 0 is any.
    Port,
    /// The first and the last port of a range.
    PortRange,
    /// A file; a relative path in a configuration file is relative to that file.
    FilePath,
    /// Empty, or a path such as `/a/b`.
    UrlPrefix,
    /// The mode of the command policy.
    PolicyMode,
    /// What records survive.
    Durability,
    /// Whether tokens are required.
    Tokens,
    /// Host names or addresses.
    Hosts,
    /// Origins of web pages: scheme, host and port.
    Origins,
    /// The tools that return structured content.
    Structured,
    /// Whether long calls become tasks.
    Tasks,
    /// An isolation level.
    Level,
    /// Network access.
    Network,
    /// Absolute paths.
    Paths,
    /// Port forwards.
    Forwards,
    /// Relative paths that stay below their base.
    RelativePaths,
    /// Capabilities of level high.
    Capabilities,
    /// The address of a webhook.
    WebhookUrl,
    /// A database server for the history.
    HistoryDatabase,
    /// A schema of that.
    SchemaName,
    /// The socket of a container engine.
    EngineSocket,
    /// This option of containers.
    Container(&'static str),
    /// A list of what this option of containers may be.
    ContainerList(&'static str),
    /// Images, or how they begin.
    ImagePatterns,
    /// Directories that volumes may be in.
    AllowedVolumes,
    /// An amount of this resource limit.
    Quantity(&'static str),
}

/// A value before validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RawValue {
    /// Text of a file, a variable or a flag.
    Text(String),
    /// A number in a file.
    Number(i64),
    /// A boolean in a file.
    Flag(bool),
    /// A list of strings in a file.
    List(Vec<String>),
    /// Any other value in a file, as written there.
    Unsupported(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum SettingValue {
    Unset,
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<String>),
}

impl fmt::Display for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::List(items) => write!(f, "{items:?}"),
            Self::Unsupported(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.write_str("-"),
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::List(items) => f.write_str(&items.join(",")),
        }
    }
}

impl ValueKind {
    /// The allowed values, for people.
    pub(crate) fn allowed(self) -> String {
        match self {
            Self::Directory => "an absolute path".to_owned(),
            Self::Programs => {
                "a comma list of program names or absolute paths, at least one".to_owned()
            }
            Self::Encoding => "a WHATWG label such as utf-8, gbk or shift_jis, or auto".to_owned(),
            Self::SearchPath => "absolute directories with ':' between them".to_owned(),
            Self::Retention => format!("whole seconds from 0 to {LONGEST_S}, or forever"),
            Self::Count => format!("a whole number from 1 to {}", u32::MAX),
            Self::Millis => format!("whole milliseconds from 0 to {}", LONGEST_S * 1_000),
            Self::Names => "a comma list of variable names".to_owned(),
            Self::VariablePrefix => "a variable name, as in CLAUDE_".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Days => "whole days from 1 to 36500".to_owned(),
            Self::Mirror => MIRROR_FORMATS.join(", "),
            Self::IdleSeconds => format!("whole seconds from 0 to {LONGEST_S}; 0 is never"),
            Self::Tools => TOOL_PROFILES.join(", "),
            Self::Host => "an IP address, or localhost".to_owned(),
            Self::Port => "a port from 0 to 65535; 0 is any free one".to_owned(),
            Self::PortRange => "two ports such as 20000-29999, from 1024 on".to_owned(),
            Self::FilePath => "a path; in a variable an absolute one".to_owned(),
            Self::UrlPrefix => "/ and words with / between them, such as /tools/ostler".to_owned(),
            Self::PolicyMode => POLICY_MODES.join(", "),
            Self::Durability => Durability::NAMES.join(", "),
            Self::Tokens => TOKEN_MODES.join(", "),
            Self::Hosts => "a comma list of host names or addresses".to_owned(),
            Self::Origins => "a comma list such as https://ui.example:8443".to_owned(),
            Self::Structured => STRUCTURED.join(", "),
            Self::Tasks => TASKS.join(", "),
            Self::Level => LEVELS.join(", "),
            Self::Network => "none, full, or a comma list of hosts such as example.org, \
                              *.example.org:8443 or 10.0.0.0/8"
                .to_owned(),
            Self::Paths => "a comma list of absolute paths".to_owned(),
            Self::Forwards => "a comma list of ports such as 8080 or 8080:80".to_owned(),
            Self::RelativePaths => "a comma list of relative paths without '..'".to_owned(),
            Self::Capabilities => {
                format!("a comma list of {}", Capability::OPTIONAL_NAMES.join(", "))
            }
            Self::EngineSocket => "an absolute path, or unix:// before one".to_owned(),
            Self::Container(option) | Self::ContainerList(option) => {
                container::allowed(option).to_owned()
            }
            Self::ImagePatterns => {
                "a comma list of images, or how they begin, as in registry.example/team/*"
                    .to_owned()
            }
            Self::AllowedVolumes => {
                "a comma list of absolute paths; with :rw, volumes there may be writable".to_owned()
            }
            Self::Quantity(name) => {
                let result = Limits::default().set(name, "");
                result.map_or_else(|error| error.allowed.to_owned(), |()| String::new())
            }
            Self::HistoryDatabase => {
                "postgresql://user@host:port/database, or the directory of a socket such as \
                 /run/postgresql; without a password, on this machine"
                    .to_owned()
            }
            Self::SchemaName => {
                "small letters, digits and '_', at most 63, not beginning with pg_".to_owned()
            }
            Self::WebhookUrl => {
                "http:// or https://, a host and a path, without a password".to_owned()
            }
            Self::LogFilter => format!(
                "{}; or a filter such as ostler=debug",
                LOG_LEVELS.join(", ")
            ),
        }
    }

    /// Parses a value of this kind; none if it is invalid.
    pub(crate) fn parse(self, raw: &RawValue) -> Option<SettingValue> {
        match self {
            Self::Directory => text(raw)
                .filter(|path| is_plain_absolute(path))
                .map(normalized),
            Self::Programs => list(raw, is_program)
                .filter(|items| !items.is_empty())
                .map(SettingValue::List),
            Self::Encoding => text(raw)
                .filter(|label| ostler_journal::encoding_for_label(label).is_ok())
                .map(SettingValue::Text),
            Self::SearchPath => text_where(raw, is_search_path),
            Self::Retention if is_forever(raw) => Some(SettingValue::Text(FOREVER.to_owned())),
            Self::Retention | Self::IdleSeconds => number(raw, 0, LONGEST_S),
            Self::Count => number(raw, 1, u32::MAX.into()),
            Self::Millis => number(raw, 0, LONGEST_S * 1_000),
            Self::Names => list(raw, is_variable_name).map(SettingValue::List),
            Self::VariablePrefix => text(raw)
                .filter(|prefix| is_variable_name(prefix))
                .map(SettingValue::Text),
            Self::Flag => flag(raw).map(SettingValue::Flag),
            Self::Days => number(raw, 1, 36_500),
            Self::Mirror => one_of(raw, &MIRROR_FORMATS),
            Self::PolicyMode => one_of(raw, &POLICY_MODES),
            Self::Durability => one_of(raw, &Durability::NAMES),
            Self::Tokens => one_of(raw, &TOKEN_MODES),
            Self::Structured => one_of(raw, &STRUCTURED),
            Self::Tasks => one_of(raw, &TASKS),
            Self::Host => text_where(raw, is_address),
            Self::Port => number(raw, 0, u16::MAX.into()),
            Self::PortRange => text(raw)
                .filter(|range| port_range(range).is_some())
                .map(SettingValue::Text),
            Self::FilePath => text(raw)
                .filter(|path| !path.is_empty() && !path.contains('\0'))
                .map(SettingValue::Text),
            Self::UrlPrefix => text(raw)
                .and_then(|path| url_prefix(&path))
                .map(SettingValue::Text),
            Self::Hosts => list(raw, is_host_name).map(SettingValue::List),
            Self::Origins => list(raw, is_origin).map(SettingValue::List),
            Self::Tools => list(raw, |name| TOOL_PROFILES.contains(&name))
                .filter(|items| !items.is_empty())
                .map(SettingValue::List),
            Self::Level => one_of(raw, &LEVELS),
            Self::Network => list(raw, |_| true)
                .filter(|items| NetworkAccess::from_words(items.iter().map(String::as_str)).is_ok())
                .map(SettingValue::List),
            Self::Paths => list(raw, is_plain_absolute).map(SettingValue::List),
            Self::Forwards => {
                list(raw, |it| it.parse::<PortForward>().is_ok()).map(SettingValue::List)
            }
            Self::RelativePaths => list(raw, is_relative_below).map(SettingValue::List),
            Self::Capabilities => {
                list(raw, |word| word.parse::<Capability>().is_ok()).map(SettingValue::List)
            }
            Self::EngineSocket
            | Self::Container(_)
            | Self::ContainerList(_)
            | Self::ImagePatterns
            | Self::AllowedVolumes => self.parse_container(raw),
            Self::Quantity(name) => quantity(raw)
                .filter(|text| Limits::default().set(name, text).is_ok())
                .map(SettingValue::Text),
            Self::HistoryDatabase => text_of::<PostgresAddress>(raw),
            Self::SchemaName => text_of::<SchemaName>(raw),
            Self::WebhookUrl => text_of::<WebhookUrl>(raw),
            Self::LogFilter => text(raw)
                .filter(|filter| is_log_filter(filter))
                .map(SettingValue::Text),
        }
    }
}

impl ValueKind {
    /// Parses a value of a kind of containers.
    fn parse_container(self, raw: &RawValue) -> Option<SettingValue> {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the other kinds are parsed above"
        )]
        match self {
            Self::EngineSocket => text(raw)
                .filter(|text| is_plain_absolute(container::socket_path(text)))
                .map(SettingValue::Text),
            Self::Container(option @ ("dns" | "cap_add" | "volumes")) => list(raw, |_| true)
                .filter(|words| words.is_empty() || container::is_valid(option, words))
                .map(SettingValue::List),
            Self::Container(option) => text(raw)
                .filter(|word| container::is_valid(option, std::slice::from_ref(word)))
                .map(SettingValue::Text),
            Self::ContainerList(option) => {
                let is_item = |word: &str| container::is_valid(option, &[word.to_owned()]);
                list(raw, is_item).map(SettingValue::List)
            }
            Self::ImagePatterns => list(raw, container::is_image_pattern).map(SettingValue::List),
            Self::AllowedVolumes => {
                let is_item = |word: &str| container::allowed_volume(word).is_some();
                list(raw, is_item).map(SettingValue::List)
            }
            _ => None,
        }
    }

    /// Whether a refused value is shown. An address may be one with a password.
    pub(crate) const fn is_shown(self) -> bool {
        !matches!(self, Self::WebhookUrl | Self::HistoryDatabase)
    }

    /// Why a value is refused, where more is known than what is allowed.
    pub(crate) fn reason(self, raw: &RawValue) -> Option<AddressError> {
        if self != Self::HistoryDatabase {
            return None;
        }
        text(raw)?.parse::<PostgresAddress>().err()
    }
}

/// The word for unlimited retention.
pub(crate) const FOREVER: &str = "forever";

fn is_forever(raw: &RawValue) -> bool {
    *raw == RawValue::Text(FOREVER.to_owned())
}

fn text(raw: &RawValue) -> Option<String> {
    match raw {
        RawValue::Text(text) => Some(text.trim().to_owned()),
        RawValue::Number(_) | RawValue::Flag(_) | RawValue::List(_) | RawValue::Unsupported(_) => {
            None
        }
    }
}

/// A text of which this holds.
fn text_where(raw: &RawValue, is: impl Fn(&str) -> bool) -> Option<SettingValue> {
    text(raw).filter(|text| is(text)).map(SettingValue::Text)
}

/// A text that is a `T`.
fn text_of<T: FromStr>(raw: &RawValue) -> Option<SettingValue> {
    text(raw)
        .filter(|text| text.parse::<T>().is_ok())
        .map(SettingValue::Text)
}

/// The text of an amount; a number counts as its text.
fn quantity(raw: &RawValue) -> Option<String> {
    match raw {
        RawValue::Number(number) => Some(number.to_string()),
        RawValue::Text(_) | RawValue::Flag(_) | RawValue::List(_) | RawValue::Unsupported(_) => {
            text(raw)
        }
    }
}

fn number(raw: &RawValue, min: u64, max: u64) -> Option<SettingValue> {
    let number = match raw {
        RawValue::Number(number) => u64::try_from(*number).ok()?,
        RawValue::Text(text) => text.trim().parse().ok()?,
        RawValue::Flag(_) | RawValue::List(_) | RawValue::Unsupported(_) => return None,
    };
    (min..=max)
        .contains(&number)
        .then_some(SettingValue::Number(number))
}

fn flag(raw: &RawValue) -> Option<bool> {
    match raw {
        RawValue::Flag(flag) => Some(*flag),
        RawValue::Text(text) => text.trim().parse().ok(),
        RawValue::Number(_) | RawValue::List(_) | RawValue::Unsupported(_) => None,
    }
}

pub(super) fn list(raw: &RawValue, is_item: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let items: Vec<String> = match raw {
        RawValue::List(items) => items.clone(),
        RawValue::Text(text) if text.trim().is_empty() => Vec::new(),
        RawValue::Text(text) => text.split(',').map(|item| item.trim().to_owned()).collect(),
        RawValue::Number(_) | RawValue::Flag(_) | RawValue::Unsupported(_) => return None,
    };
    let is_valid = items.len() <= LIST_ITEMS && items.iter().all(|item| is_item(item));
    is_valid.then_some(items)
}

fn one_of(raw: &RawValue, words: &[&str]) -> Option<SettingValue> {
    text(raw)
        .filter(|word| words.contains(&word.as_str()))
        .map(SettingValue::Text)
}

/// Removes doubled and trailing slashes from a path.
fn normalized(path: String) -> SettingValue {
    let parts: PathBuf = Path::new(&path).components().collect();
    SettingValue::Text(parts.into_os_string().into_string().unwrap_or(path))
}
