//! The forms that values of settings have: addresses, paths, names, filters.

use std::net::IpAddr;
use std::path::{Component, Path};

use super::value::LOG_LEVELS;

/// The first unprivileged port.
const FREE_PORT: u16 = 1_024;

pub(super) fn is_address(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok()
}

/// Parses a port range; none where it is not a range of unprivileged ports.
pub(super) fn port_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (FREE_PORT <= first && first <= last).then_some((first, last))
}

/// A path without its trailing slash.
pub(super) fn url_prefix(path: &str) -> Option<String> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_plain);
    let fits = match path.strip_prefix('/') {
        Some(words) => words.split('/').all(is_word),
        None => path.is_empty(),
    };
    fits.then(|| path.to_owned())
}

/// Whether the text is a host, with or without a port.
pub(super) fn is_host_name(item: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    !item.is_empty() && item.bytes().all(is_plain)
}

pub(super) fn is_origin(item: &str) -> bool {
    let host = item
        .strip_prefix("http://")
        .or(item.strip_prefix("https://"));
    host.is_some_and(is_host_name)
}

/// Whether the text is a bare name or an absolute path: a relative path would depend on the
/// working directory.
pub(super) fn is_program(item: &str) -> bool {
    let printable = !item.is_empty() && !item.chars().any(char::is_control);
    printable && (!item.contains('/') || is_plain_absolute(item))
}

pub(super) fn is_variable_name(item: &str) -> bool {
    !item.is_empty() && !item.contains(['=', '\0']) && !item.chars().any(char::is_whitespace)
}

pub(super) fn is_plain_absolute(path: &str) -> bool {
    Path::new(path).is_absolute() && !path.contains('\0')
}

/// Whether the text is a relative path that stays below its base.
pub(super) fn is_relative_below(path: &str) -> bool {
    let down = |part| matches!(part, Component::Normal(_));
    !path.is_empty() && !path.contains('\0') && Path::new(path).components().all(down)
}

pub(super) fn is_search_path(path: &str) -> bool {
    !path.is_empty() && path.split(':').all(is_plain_absolute)
}

pub(super) fn is_log_filter(filter: &str) -> bool {
    LOG_LEVELS.contains(&filter)
        || (filter.contains('=') && tracing_subscriber::EnvFilter::try_new(filter).is_ok())
}
