//! The addresses of the web interface.

use axum::http::Method;
use axum::http::request::Parts;

/// The pages; `*` is any rest that is not empty. The interface has the same list in
/// `web/src/app/routes.ts`.
pub(super) const PAGES: &[&str] = &[
    "/",
    "/processes",
    "/p/*",
    "/terminals",
    "/t/*",
    "/services",
    "/services/*",
    "/inbox",
    "/inbox/*",
    "/templates",
    "/templates/*",
    "/history",
    "/audit",
    "/resources",
    "/settings",
    "/settings/*",
];
/// The page that all of them are.
pub(super) const INDEX: &str = "index.html";
/// The file of the MCP App, which is no page of this server.
const MCP_APP: &str = "mcp_app.html";
/// The directory of files whose names have a hash of their content.
const ASSETS: &str = "assets/";

/// What of the web interface a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SitePath<'a> {
    /// A page: [`INDEX`].
    Page,
    /// The file with this path.
    File(&'a str),
}

impl<'a> SitePath<'a> {
    /// What a request below this prefix is for; none where it is for something else.
    pub(super) fn of(prefix: &str, parts: &'a Parts) -> Option<Self> {
        if ![Method::GET, Method::HEAD].contains(&parts.method) {
            return None;
        }
        let path = parts.uri.path().strip_prefix(prefix)?;
        if is_page(path) || (path.is_empty() && !prefix.is_empty()) {
            return Some(Self::Page);
        }
        let file = path.strip_prefix('/')?;
        is_file(file).then_some(Self::File(file))
    }
}

/// Whether the name of a file changes with its content.
pub(super) fn is_immutable(path: &str) -> bool {
    path.starts_with(ASSETS)
}

fn is_page(path: &str) -> bool {
    PAGES.iter().any(|page| match page.strip_suffix('*') {
        Some(start) => path.len() > start.len() && path.starts_with(start),
        None => path == *page,
    })
}

/// Whether this can be a file: in [`ASSETS`], or beside [`INDEX`] with a `.` in its name, which no
/// other route has.
fn is_file(path: &str) -> bool {
    let (is_asset, name) = match path.strip_prefix(ASSETS) {
        Some(name) => (true, name),
        None => (false, path),
    };
    let is_other = [INDEX, MCP_APP].contains(&path);
    is_file_name(name) && (is_asset || name.contains('.')) && !is_other
}

/// Whether this is one name, of the characters that built files have.
fn is_file_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~@+".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn parts(method: Method, path: &str) -> Parts {
        let request = Request::builder().method(method).uri(path);
        request.body(()).unwrap().into_parts().0
    }

    fn is_page_at(prefix: &str, path: &str) -> bool {
        SitePath::of(prefix, &parts(Method::GET, path)) == Some(SitePath::Page)
    }

    #[test]
    fn each_page_is_one_below_the_prefix_too() {
        for page in PAGES {
            let path = page.replace('*', "k3v9/output");
            assert!(is_page_at("", &path), "{path}");
            assert!(is_page_at("/o", &format!("/o{path}?x=1")), "{path}");
            assert!(!is_page_at("/o", &path), "{path}");
        }
        assert!(is_page_at("/o", "/o"));
    }

    #[test]
    fn what_is_no_page_is_none() {
        for path in [
            "/p",
            "/p/",
            "/t/",
            "/processes/",
            "/processes/x",
            "//",
            "//processes",
            "/Processes",
            "/api/v1/health",
            "/mcp",
            "/metrics",
            "/of",
            "/%70rocesses",
        ] {
            assert!(!is_page_at("", path), "{path}");
            assert_eq!(SitePath::of("", &parts(Method::GET, path)), None, "{path}");
        }
        assert!(!is_page_at("/o", "/of"));
        for method in [Method::POST, Method::DELETE, Method::OPTIONS] {
            assert_eq!(SitePath::of("", &parts(method.clone(), "/")), None);
            assert_eq!(SitePath::of("", &parts(method, "/assets/x.js")), None);
        }
    }

    #[test]
    fn files_are_those_of_a_build() {
        for path in ["assets/index-C1O_-.js", "assets/LICENSE", "favicon.svg"] {
            let parts = parts(Method::HEAD, &format!("/o/{path}?v=1"));
            assert_eq!(SitePath::of("/o", &parts), Some(SitePath::File(path)));
        }
        for path in [
            "/assets/",
            "/assets",
            "/assets/../../x.js",
            "/assets/..",
            "/assets/.env",
            "/assets/%2e%2e/x.js",
            "/assets/..%2fx.js",
            "/assets//x.js",
            "/assets/sub/x.js",
            "/assets/x%00.js",
            "/assets/x\\y.js",
            "/./favicon.svg",
            "/.env",
            "/other/x.js",
            "/index.html",
            "/mcp_app.html",
            "/mcp",
        ] {
            assert_eq!(SitePath::of("", &parts(Method::GET, path)), None, "{path}");
        }
    }
}
