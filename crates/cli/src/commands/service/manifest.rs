//! Messages for users without an `ostler.toml`.

use std::path::{Path, PathBuf};

use ostler_sys::regular_file::WrongFileType;

use crate::error::CommandError;

/// The name of the file.
const FILE: &str = "ostler.toml";
/// An example of its content.
const EXAMPLE: &str = "write one, for example:\n\
    \x20 [services.web]\n\
    \x20 command = \"npm run dev\"\n\
    \x20 port = 3000\n\
    \x20 depends_on = [\"db\"]";

/// Checks that there is an `ostler.toml` for `cwd`.
///
/// # Errors
/// Where there is none.
pub(super) fn check_manifest_exists(cwd: &Path, home: &Path) -> Result<(), CommandError> {
    match find_manifest(&searched_dirs(cwd, home)) {
        Some(_) => Ok(()),
        None => Err(no_services_error(cwd, home)),
    }
}

fn find_manifest(dirs: &[PathBuf]) -> Option<PathBuf> {
    let mut files = dirs.iter().map(|dir| dir.join(FILE));
    files.find(|file| file.is_file())
}

/// What has the name of the file, in the nearest directory, and is none.
fn find_wrong_type(dirs: &[PathBuf]) -> Option<String> {
    let mut files = dirs.iter().map(|dir| dir.join(FILE));
    files.find_map(|file| {
        let what = WrongFileType::at(&file)?;
        Some(format!("{} is {what}", file.display()))
    })
}

/// The error if no service is defined for `cwd`.
pub(super) fn no_services_error(cwd: &Path, home: &Path) -> CommandError {
    let dirs = searched_dirs(cwd, home);
    let message = match find_manifest(&dirs) {
        Some(file) => format!("{} defines no services", file.display()),
        None => {
            let shown: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
            let subject = match find_wrong_type(&dirs) {
                Some(wrong) => wrong,
                None => format!("there is no {FILE}"),
            };
            format!("{subject}; looked in {}", shown.join(", "))
        }
    };
    CommandError::value(message).with_hint(EXAMPLE)
}

/// The directories from `cwd` up to the home directory or the root.
fn searched_dirs(cwd: &Path, home: &Path) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for directory in cwd.ancestors() {
        dirs.push(directory.to_owned());
        if directory == home {
            break;
        }
    }
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_up_to_home_is_named() {
        let looked = searched_dirs(Path::new("/home/ann/web/app"), Path::new("/home/ann"));
        let searched: Vec<&Path> = looked.iter().map(PathBuf::as_path).collect();
        assert_eq!(
            searched,
            ["/home/ann/web/app", "/home/ann/web", "/home/ann"].map(Path::new)
        );
        assert_eq!(
            searched_dirs(Path::new("/srv"), Path::new("/root")).len(),
            2
        );
    }
}
