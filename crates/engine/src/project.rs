//! The project of a directory: executions that outlive a session pass to its project.

use std::fs;
use std::path::Path;

/// The files or directories that mark the root of a project.
const ROOT_MARKERS: [&str; 2] = ["ostler.toml", ".git"];

/// The project of a working directory: the nearest directory upwards that holds an `ostler.toml` or
/// a `.git`, else the directory itself, without symbolic links. The home directory and its parents
/// are not projects of directories below them.
#[must_use]
pub fn project_of(cwd: &Path, home: Option<&Path>) -> String {
    let here = fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    let home = home.and_then(|home| fs::canonicalize(home).ok());
    let below_home = |dir: &&Path| Some(*dir) != home.as_deref() && dir.parent().is_some();
    let mut roots = here.ancestors().take_while(below_home);
    let root = roots.find(|dir| ROOT_MARKERS.iter().any(|mark| dir.join(mark).exists()));
    root.unwrap_or(&here).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mark_upwards_decides_and_home_is_the_root_of_nothing_below() {
        let dir = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(dir.path()).unwrap();
        for path in ["repository/src/deep", "plain/deep", ".git"] {
            fs::create_dir_all(home.join(path)).unwrap();
        }
        fs::create_dir(home.join("repository/.git")).unwrap();
        fs::write(home.join("repository/src/ostler.toml"), "").unwrap();
        let of = |path: &str| project_of(&home.join(path), Some(&home));
        let name = |path: &str| home.join(path).display().to_string();
        assert_eq!(of("repository/src/deep"), name("repository/src"));
        assert_eq!(of("repository"), name("repository"));
        assert_eq!(of("plain/deep"), name("plain/deep"));
        assert_eq!(
            project_of(&home.join("plain"), None),
            home.display().to_string()
        );
        assert_eq!(project_of(Path::new("/"), None), "/");
    }
}
