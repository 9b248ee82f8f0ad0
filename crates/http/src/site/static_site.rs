//! The web interface as it is served.

use std::collections::HashMap;
use std::path::PathBuf;

use axum::http::request::Parts;
use axum::response::Response;

use super::directory;
use super::notice::notice;
use super::paths::{INDEX, SitePath};
use super::site_file::SiteFile;
use crate::gzip;

/// Where the files of the web interface are.
#[derive(Debug, Clone)]
pub enum WebFiles {
    /// In the program.
    Embedded(Vec<WebFile>),
    /// In this directory; read at each request, for development.
    Directory(PathBuf),
    /// Nowhere, for this reason, which the page says instead.
    Absent(&'static str),
}

impl WebFiles {
    /// Whether there is a file with this path.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        match self {
            Self::Embedded(files) => files.iter().any(|file| file.path == path),
            Self::Directory(dir) => dir.join(path).is_file(),
            Self::Absent(_) => false,
        }
    }

    /// The content of a file, where there is one; blocks while it is read.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        match self {
            Self::Embedded(files) => {
                let file = files.iter().find(|file| file.path == path)?;
                gzip::decompress(file.gzip).ok()
            }
            Self::Directory(dir) => directory::read_blocking(dir, path),
            Self::Absent(_) => None,
        }
    }
}

/// A file in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebFile {
    /// Its path below the directory of the interface, with `/`.
    pub path: &'static str,
    /// Its content as gzip.
    pub gzip: &'static [u8],
    /// The SHA-256 of its content, in hexadecimal digits.
    pub sha256: &'static str,
}

/// The web interface below a prefix.
#[derive(Debug)]
pub(crate) struct StaticSite {
    url_prefix: String,
    files: SiteFiles,
}

#[derive(Debug)]
enum SiteFiles {
    Embedded {
        /// What every page is.
        index: SiteFile,
        /// The others by path.
        others: HashMap<&'static str, SiteFile>,
    },
    Directory(PathBuf),
}

impl StaticSite {
    pub(crate) fn new(url_prefix: &str, files: WebFiles) -> Self {
        let files = match files {
            WebFiles::Directory(dir) => SiteFiles::Directory(dir),
            WebFiles::Absent(reason) => SiteFiles::Embedded {
                index: notice_file(url_prefix, reason),
                others: HashMap::new(),
            },
            WebFiles::Embedded(files) => {
                let index = files.iter().find(|file| file.path == INDEX);
                let index = index.and_then(|file| gzip::decompress(file.gzip).ok());
                let others = files.into_iter().map(|file| {
                    let WebFile { path, gzip, sha256 } = file;
                    (path, SiteFile::embedded(path, gzip, sha256))
                });
                SiteFiles::Embedded {
                    index: index_file(url_prefix, index),
                    others: others.collect(),
                }
            }
        };
        Self {
            url_prefix: url_prefix.to_owned(),
            files,
        }
    }

    /// The response to a request for a file of the interface; none where it is for something else.
    pub(crate) async fn respond(&self, parts: &Parts) -> Option<Response> {
        let requested = SitePath::of(&self.url_prefix, parts)?;
        let response = |file: &SiteFile| file.response(&parts.headers);
        match (requested, &self.files) {
            (SitePath::Page, SiteFiles::Embedded { index, .. }) => Some(response(index)),
            (SitePath::File(path), SiteFiles::Embedded { others, .. }) => {
                others.get(path).map(response)
            }
            (SitePath::Page, SiteFiles::Directory(dir)) => {
                let index = directory::read(dir, INDEX).await;
                Some(response(&index_file(&self.url_prefix, index)))
            }
            (SitePath::File(path), SiteFiles::Directory(dir)) => {
                let content = directory::read(dir, path).await?;
                Some(response(&SiteFile::plain(path, content)))
            }
        }
    }
}

/// The page, with the prefix before the files that it names: its own address may be at any depth.
fn index_file(prefix: &str, index: Option<Vec<u8>>) -> SiteFile {
    let Some(index) = index else {
        return notice_file(prefix, "there is no index.html among its files");
    };
    let text = String::from_utf8_lossy(&index);
    let text = ["src", "href"]
        .iter()
        .fold(text.into_owned(), |text, name| {
            text.replace(&format!(" {name}=\"./"), &format!(" {name}=\"{prefix}/"))
        });
    SiteFile::plain(INDEX, text.into_bytes())
}

fn notice_file(prefix: &str, reason: &str) -> SiteFile {
    SiteFile::plain(INDEX, notice(prefix, reason).into_bytes())
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::Request;
    use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, VARY};
    use bytes::Bytes;
    use miniz_oxide::deflate::compress_to_vec;

    use super::*;

    async fn page(site: &StaticSite, path: &str) -> Option<String> {
        let (parts, ()) = Request::builder().uri(path).body(()).unwrap().into_parts();
        let response = site.respond(&parts).await?;
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        Some(String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_page_at_any_depth_names_its_files_from_the_prefix_on() {
        let dir = tempfile::tempdir().unwrap();
        let text =
            "<script src=\"./assets/a.js\"></script><link href=\"./i.svg\"><a href=\"x\">./</a>";
        std::fs::write(dir.path().join(INDEX), text).unwrap();
        for prefix in ["", "/deep/er"] {
            let files = WebFiles::Directory(dir.path().to_owned());
            let site = StaticSite::new(prefix, files);
            let served = page(&site, &format!("{prefix}/p/k3v9/output")).await;
            let expected = format!(
                "<script src=\"{prefix}/assets/a.js\"></script><link href=\"{prefix}/i.svg\">\
                 <a href=\"x\">./</a>"
            );
            assert_eq!(served, Some(expected));
        }
    }

    #[tokio::test]
    async fn without_an_index_the_page_says_so() {
        let dir = tempfile::tempdir().unwrap();
        for (files, words) in [
            (
                WebFiles::Absent("Node.js was not there"),
                "Node.js was not there",
            ),
            (WebFiles::Embedded(Vec::new()), "no index.html"),
            (WebFiles::Directory(dir.path().to_owned()), "no index.html"),
        ] {
            let site = StaticSite::new("", files);
            let served = page(&site, "/").await.unwrap();
            assert!(served.contains(words), "{served}");
            assert_eq!(page(&site, "/assets/a.js").await, None);
        }
    }

    const SCRIPT: &str = "export const answer = 42;";

    /// A file as the build script of the interface makes it.
    fn embedded(path: &'static str, text: &str) -> WebFile {
        let deflated = compress_to_vec(text.as_bytes(), 10);
        WebFile {
            path,
            gzip: [&[0; 10], deflated.as_slice(), &[0; 8]].concat().leak(),
            sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        }
    }

    async fn requested(site: &StaticSite, path: &str, coding: &str) -> (Response, Bytes) {
        let request = Request::builder().uri(path).header(ACCEPT_ENCODING, coding);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let response = site.respond(&parts).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 10_000).await.unwrap();
        (Response::from_parts(parts, axum::body::Body::empty()), body)
    }

    #[tokio::test]
    async fn a_file_of_the_program_is_sent_as_it_is_or_unpacked_and_kept_for_ever() {
        let index = embedded(INDEX, "<script src=\"./assets/a-1.js\"></script>");
        let files = vec![
            index,
            embedded("assets/a-1.js", SCRIPT),
            embedded("i.svg", "<svg/>"),
        ];
        let site = StaticSite::new("/o", WebFiles::Embedded(files.clone()));
        let (packed, body) = requested(&site, "/o/assets/a-1.js", "br, gzip").await;
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        assert_eq!(body, files[1].gzip);
        let (plain, body) = requested(&site, "/o/assets/a-1.js", "identity").await;
        assert!(!plain.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(body, SCRIPT);
        for response in [&packed, &plain] {
            let immutable = "public, max-age=31536000, immutable";
            assert_eq!(response.headers()[CACHE_CONTROL], immutable);
            assert_eq!(response.headers()[VARY], "accept-encoding");
            assert_eq!(
                response.headers()[ETAG],
                "W/\"0123456789abcdef0123456789abcdef\""
            );
        }
        for path in ["/o/i.svg", "/o/processes"] {
            let (response, _) = requested(&site, path, "gzip").await;
            assert_eq!(response.headers()[CACHE_CONTROL], "no-cache", "{path}");
        }
        let page = page(&site, "/o/p/k3v9").await.unwrap();
        assert_eq!(page, "<script src=\"/o/assets/a-1.js\"></script>");
    }
}
