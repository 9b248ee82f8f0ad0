//! Files of a directory, read at each request.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

/// The largest file that is served, in bytes.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The content of a file below `dir`; none where there is no such file.
pub(super) async fn read(dir: &Path, path: &str) -> Option<Vec<u8>> {
    let (dir, path) = (dir.to_owned(), path.to_owned());
    let reading = tokio::task::spawn_blocking(move || read_blocking(&dir, &path));
    reading.await.ok().flatten()
}

/// The same, while the thread waits.
pub(super) fn read_blocking(dir: &Path, path: &str) -> Option<Vec<u8>> {
    match read_beneath(dir, path) {
        Ok(content) => Some(content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            tracing::warn!(%error, dir = %dir.display(), path, "a file of the page is not served");
            None
        }
    }
}

/// Reads a regular file to which no link leads out of `dir`.
fn read_beneath(dir: &Path, path: &str) -> io::Result<Vec<u8>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, dir, flags, Mode::empty())?;
    // A pipe in its place must not be waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(&root, path, flags, Mode::empty(), resolve)?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut content = Vec::new();
    File::from(file)
        .take(FILE_BYTES + 1)
        .read_to_end(&mut content)?;
    if content.len() as u64 > FILE_BYTES {
        return Err(io::Error::other(format!(
            "it is larger than {FILE_BYTES} bytes"
        )));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_of_the_directory_are_read() {
        let outside = tempfile::tempdir().unwrap();
        let dir = outside.path().join("dist");
        fs::create_dir_all(dir.join("assets")).unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        fs::write(dir.join("assets/a.js"), "a").unwrap();
        symlink("a.js", dir.join("assets/within.js")).unwrap();
        symlink("../../secret", dir.join("assets/out.js")).unwrap();
        symlink(outside.path().join("secret"), dir.join("absolute.js")).unwrap();
        symlink("..", dir.join("up")).unwrap();
        rustix::fs::mkfifoat(CWD, dir.join("pipe.js"), Mode::RUSR).unwrap();
        let read = |path: &str| read_beneath(&dir, path).ok();
        assert_eq!(read("assets/a.js").as_deref(), Some(&b"a"[..]));
        assert_eq!(read("assets/within.js").as_deref(), Some(&b"a"[..]));
        for path in [
            "assets/out.js",
            "absolute.js",
            "../secret",
            "up/secret",
            "assets",
            "pipe.js",
            "none.js",
            "/etc/hostname",
            "",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
        let large = File::create(dir.join("large.js")).unwrap();
        large.set_len(FILE_BYTES + 1).unwrap();
        assert_eq!(read("large.js"), None);
    }
}
