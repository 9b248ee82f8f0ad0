//! URIs of source files.

/// The URI of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceUri {
    pub(super) uri: String,
    /// Whether it is relative to the working directory.
    pub(super) is_relative: bool,
}

/// The URI of a file as a tool printed it. One below the working directory is relative to it.
pub(super) fn source_uri(cwd: &str, file: &str) -> SourceUri {
    let base = segments("", cwd);
    let path = segments(if file.starts_with('/') { "" } else { cwd }, file);
    match path.strip_prefix(base.as_slice()) {
        Some(rest) if !rest.is_empty() => SourceUri {
            uri: encode(&rest.join("/")),
            is_relative: true,
        },
        Some(_) | None => SourceUri {
            uri: format!("file:///{}", encode(&path.join("/"))),
            is_relative: false,
        },
    }
}

/// The URI of a directory, with a slash at its end.
pub(super) fn directory_uri(path: &str) -> String {
    let path = segments("", path).join("/");
    let slash = if path.is_empty() { "" } else { "/" };
    format!("file:///{}{slash}", encode(&path))
}

/// The names of a path from the root on, without `.` and `..`.
fn segments<'a>(base: &'a str, path: &'a str) -> Vec<&'a str> {
    let mut segments = Vec::new();
    for segment in base.split('/').chain(path.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    segments
}

/// Percent-encodes what RFC 3986 does not allow in a path, and colons.
fn encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relative(cwd: &str, file: &str) -> Option<String> {
        let uri = source_uri(cwd, file);
        uri.is_relative.then_some(uri.uri)
    }

    #[test]
    fn files_below_the_directory_are_relative() {
        assert_eq!(relative("/a/b", "src/x.rs").unwrap(), "src/x.rs");
        assert_eq!(relative("/a/b/", "./src/../y.rs").unwrap(), "y.rs");
        assert_eq!(relative("/a/b", "/a/b/x y#1.rs").unwrap(), "x%20y%231.rs");
        assert_eq!(relative("/", "/etc/x").unwrap(), "etc/x");
        assert_eq!(relative("/a", "C:\\x").unwrap(), "C%3A%5Cx");
    }

    #[test]
    fn other_files_are_absolute() {
        assert_eq!(source_uri("/a/b", "../x.rs").uri, "file:///a/x.rs");
        assert_eq!(source_uri("/a/b", "/a/bc/x.rs").uri, "file:///a/bc/x.rs");
        assert_eq!(source_uri("/a", "../../é").uri, "file:///%C3%A9");
        assert_eq!(source_uri("/a", "/a").uri, "file:///a");
        assert_eq!(directory_uri("/a b/"), "file:///a%20b/");
        assert_eq!(directory_uri("/"), "file:///");
    }
}
