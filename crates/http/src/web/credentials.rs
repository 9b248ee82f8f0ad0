//! The token of a page in two halves: a cookie, which no script can read, and a page key, which no
//! other server of the host receives. Neither helps to guess the other.

use std::fmt;

use axum::http::header::{AUTHORIZATION, COOKIE, SEC_WEBSOCKET_PROTOCOL};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::cookie::cookie_name;
use crate::origin_check::requested_host;
use crate::tokens::TOKEN_PREFIX;

/// The header with the page key.
const PAGE_KEY_HEADER: HeaderName = HeaderName::from_static("ostler-page-key");
/// The subprotocol that a page's WebSocket gets; browsers close one that gets none.
pub(crate) const PAGE_SUBPROTOCOL: &str = "ostler";
/// What the page key follows among the subprotocols that a WebSocket requests.
const KEY_SUBPROTOCOL: &str = "ostler-page-key.";
/// The length of the half in the cookie, in characters of base64url.
const COOKIE_CHARS: usize = 22;
/// The length of the page key.
const PAGE_KEY_CHARS: usize = 21;
/// The most cookies of one request that are tried: a server of this host can set others with the
/// same name for longer paths.
const COOKIES: usize = 4;

/// A token in two halves. `Debug` does not show them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TokenHalves {
    pub(crate) cookie: String,
    pub(crate) page_key: String,
}

/// What a page sends of its token. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum PageCredentials {
    /// Nothing.
    Absent,
    /// The cookie alone.
    WithoutPageKey,
    /// The page key alone.
    WithoutCookie,
    /// Both halves, as the secrets that they may make: one for each cookie.
    Secrets(Vec<String>),
}

impl TokenHalves {
    /// The halves of a secret; none where it cannot be that of a token.
    pub(crate) fn of(secret: &str) -> Option<Self> {
        let random = secret.strip_prefix(TOKEN_PREFIX)?;
        let (cookie, page_key) = random.split_at_checked(COOKIE_CHARS)?;
        let is_whole = is_half(cookie, COOKIE_CHARS) && is_half(page_key, PAGE_KEY_CHARS);
        is_whole.then(|| Self {
            cookie: cookie.to_owned(),
            page_key: page_key.to_owned(),
        })
    }
}

impl fmt::Debug for TokenHalves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHalves(…)")
    }
}

impl PageCredentials {
    /// What this request has.
    pub(crate) fn of(parts: &Parts) -> Self {
        let headers = &parts.headers;
        let host = requested_host(&parts.uri, headers);
        let name = host.map_or_else(String::new, |host| cookie_name(&host));
        let cookies: Vec<&str> = cookies(headers, &name).take(COOKIES).collect();
        match (page_key(headers), cookies.as_slice()) {
            (None, []) => Self::Absent,
            (None, [_, ..]) => Self::WithoutPageKey,
            (Some(_), []) => Self::WithoutCookie,
            (Some(key), cookies) => {
                let secret = |cookie: &&str| format!("{TOKEN_PREFIX}{cookie}{key}");
                Self::Secrets(cookies.iter().map(secret).collect())
            }
        }
    }
}

impl fmt::Debug for PageCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "Absent",
            Self::WithoutPageKey => "WithoutPageKey",
            Self::WithoutCookie => "WithoutCookie",
            Self::Secrets(_) => "Secrets(…)",
        })
    }
}

/// Removes every credential: no later layer needs a secret, and a header that is not there cannot
/// be logged.
pub(crate) fn remove_credentials(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    headers.remove(COOKIE);
    headers.remove(PAGE_KEY_HEADER);
    let has_key = subprotocols(headers).any(|name| name.starts_with(KEY_SUBPROTOCOL));
    if !has_key {
        return;
    }
    let others = subprotocols(headers).filter(|name| !name.starts_with(KEY_SUBPROTOCOL));
    let others = others.collect::<Vec<_>>().join(", ");
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Ok(others) = HeaderValue::try_from(others)
        && !others.is_empty()
    {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
    }
}

/// The values of cookies with this name that can be the half of a token.
fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let pairs = headers.get_all(COOKIE).iter();
    let pairs = pairs.filter_map(|value| value.to_str().ok());
    let pairs = pairs.flat_map(|value| value.split(';'));
    pairs.filter_map(move |pair| {
        let (pair_name, value) = pair.trim().split_once('=')?;
        (pair_name == name && is_half(value, COOKIE_CHARS)).then_some(value)
    })
}

/// The page key, from its header or from the subprotocols of a WebSocket; none where there are
/// several.
fn page_key(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get_all(PAGE_KEY_HEADER).iter();
    let given = given.filter_map(|value| value.to_str().ok());
    let requested = subprotocols(headers);
    let requested = requested.filter_map(|name| name.strip_prefix(KEY_SUBPROTOCOL));
    let mut keys = given.chain(requested);
    let key = keys.next()?;
    (keys.next().is_none() && is_half(key, PAGE_KEY_CHARS)).then_some(key)
}

fn subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',').map(str::trim))
}

/// Whether this is so many characters of base64url.
fn is_half(text: &str, chars: usize) -> bool {
    let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    text.len() == chars && text.bytes().all(is_base64url)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    const COOKIE_HALF: &str = "0123456789abcdefghij-_";
    const KEY_HALF: &str = "ABCDEFGHIJKLMNOPQRSTU";

    fn secret() -> String {
        format!("{TOKEN_PREFIX}{COOKIE_HALF}{KEY_HALF}")
    }

    fn credentials(headers: &[(&str, &str)]) -> PageCredentials {
        PageCredentials::of(&request(headers))
    }

    fn request(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri("/api").header("host", "localhost:7");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_halves_of_a_token_make_it_again() {
        let halves = TokenHalves::of(&secret()).unwrap();
        assert_eq!(halves.cookie, COOKIE_HALF);
        assert_eq!(halves.page_key, KEY_HALF);
        assert_eq!(format!("{halves:?}"), "TokenHalves(…)");
        let cookie = format!("other=1; ostler_session_7={COOKIE_HALF}");
        let whole = PageCredentials::Secrets(vec![secret()]);
        let by_header = [("cookie", cookie.as_str()), ("ostler-page-key", KEY_HALF)];
        assert_eq!(credentials(&by_header), whole);
        let protocols = format!("ostler, ostler-page-key.{KEY_HALF}");
        let by_socket = [
            ("cookie", cookie.as_str()),
            ("sec-websocket-protocol", &protocols),
        ];
        assert_eq!(credentials(&by_socket), whole);
        assert_eq!(format!("{whole:?}"), "Secrets(…)");
    }

    #[test]
    fn what_is_no_token_has_no_halves() {
        let short = &secret()[..secret().len() - 1];
        let long = format!("{}x", secret());
        let strange = secret().replace('-', "ä");
        for text in ["", "ostler_", short, &long, &strange, &secret()[7..]] {
            assert_eq!(TokenHalves::of(text), None, "{text}");
        }
    }

    #[test]
    fn one_half_is_not_enough() {
        let cookie = format!("ostler_session_7={COOKIE_HALF}");
        let cookie = ("cookie", cookie.as_str());
        let key = ("ostler-page-key", KEY_HALF);
        assert_eq!(credentials(&[]), PageCredentials::Absent);
        assert_eq!(credentials(&[cookie]), PageCredentials::WithoutPageKey);
        assert_eq!(credentials(&[key]), PageCredentials::WithoutCookie);
        // Two keys are none, and so is one that is no half of a token.
        let two = [cookie, key, key];
        assert_eq!(credentials(&two), PageCredentials::WithoutPageKey);
        let no_half = [cookie, ("ostler-page-key", "short")];
        assert_eq!(credentials(&no_half), PageCredentials::WithoutPageKey);
    }

    #[test]
    fn cookies_of_other_ports_do_not_count_and_several_are_tried() {
        let key = ("ostler-page-key", KEY_HALF);
        for other in ["ostler_session", "ostler_session_8", "xostler_session_7"] {
            let cookie = format!("{other}={COOKIE_HALF}");
            let found = credentials(&[("cookie", &cookie), key]);
            assert_eq!(found, PageCredentials::WithoutCookie, "{other}");
        }
        let own = format!("ostler_session_7={COOKIE_HALF}");
        let foreign = format!("ostler_session_7={}", "x".repeat(COOKIE_CHARS));
        let both = format!("{foreign}; ostler_session_7=short;{own}");
        let PageCredentials::Secrets(secrets) = credentials(&[("cookie", &both), key]) else {
            panic!("two halves");
        };
        assert_eq!(secrets.len(), 2);
        assert_eq!(secrets[1], secret());
        let many = vec![foreign; COOKIES + 1].join("; ");
        let PageCredentials::Secrets(secrets) = credentials(&[("cookie", &many), key]) else {
            panic!("many halves");
        };
        assert_eq!(secrets.len(), COOKIES);
    }

    #[test]
    fn removed_credentials_leave_the_other_subprotocols() {
        let protocols = format!("ostler, ostler-page-key.{KEY_HALF}, other");
        let mut headers = request(&[
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("ostler-page-key", KEY_HALF),
            ("sec-websocket-protocol", &protocols),
        ])
        .headers;
        remove_credentials(&mut headers);
        assert_eq!(headers.len(), 2, "{headers:?}");
        assert_eq!(headers[SEC_WEBSOCKET_PROTOCOL], "ostler, other");
        let only_key = format!("ostler-page-key.{KEY_HALF}");
        let mut headers = request(&[("sec-websocket-protocol", &only_key)]).headers;
        remove_credentials(&mut headers);
        assert!(!headers.contains_key(SEC_WEBSOCKET_PROTOCOL));
    }
}
