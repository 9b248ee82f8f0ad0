//! The cookie of a page.

use axum::http::HeaderValue;
use axum::http::uri::Authority;

/// What every name of it begins with.
const NAME: &str = "ostler_session";

/// Its name at this host. Browsers keep one cookie of a name for all ports of a host, so that it
/// has the port: another daemon of this host has its own.
pub(crate) fn cookie_name(host: &Authority) -> String {
    match host.port_u16() {
        Some(port) => format!("{NAME}_{port}"),
        None => NAME.to_owned(),
    }
}

/// The cookie, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionCookie {
    pub(crate) name: String,
    /// The prefix of every path.
    pub(crate) url_prefix: String,
    /// Whether it is sent over https only.
    pub(crate) is_secure: bool,
}

impl SessionCookie {
    /// Sets it, for so many seconds. None where a part cannot stand in a header.
    pub(crate) fn set(&self, value: &str, seconds: u64) -> Option<HeaderValue> {
        let Self {
            name, url_prefix, ..
        } = self;
        let secure = if self.is_secure { "; Secure" } else { "" };
        let text = format!(
            "{name}={value}; HttpOnly; SameSite=Strict; Path={url_prefix}/; \
             Max-Age={seconds}{secure}"
        );
        let mut header = HeaderValue::try_from(text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Deletes it.
    pub(crate) fn delete(&self) -> Option<HeaderValue> {
        self.set("", 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_has_the_port_of_the_host() {
        for (host, name) in [
            ("127.0.0.1:4711", "ostler_session_4711"),
            ("[::1]:80", "ostler_session_80"),
            ("ostler.example", "ostler_session"),
        ] {
            assert_eq!(cookie_name(&host.parse().unwrap()), name, "{host}");
        }
    }

    #[test]
    fn no_script_and_no_other_site_gets_it() {
        let mut cookie = SessionCookie {
            name: "ostler_session_1".to_owned(),
            url_prefix: String::new(),
            is_secure: false,
        };
        let set = cookie.set("abc", 60).unwrap();
        assert!(set.is_sensitive());
        let wanted = "ostler_session_1=abc; HttpOnly; SameSite=Strict; Path=/; Max-Age=60";
        assert_eq!(set, wanted);
        cookie.is_secure = true;
        cookie.url_prefix = "/a/b".to_owned();
        let wanted = "ostler_session_1=; HttpOnly; SameSite=Strict; Path=/a/b/; Max-Age=0; Secure";
        assert_eq!(cookie.delete().unwrap(), wanted);
    }
}
