//! The project of a directory, to which executions pass that outlive a session; and what a caller
//! that is limited to projects reaches.

use std::fs;
use std::path::Path;

use ostler_model::{Caller, Owner, ProjectSet};

use crate::error::ProjectError;

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

/// Why a caller does not reach what it sees; none where it sees nothing of it.
pub(crate) fn read_only(caller: &Caller, owner: &Owner) -> Option<ProjectError> {
    let project = owner.project.clone().filter(|_| caller.sees_only(owner))?;
    Some(ProjectError::ReadOnly { project })
}

/// Refuses to create something that would belong to a project which the request does not reach.
pub(crate) fn check_created(caller: &Caller) -> Result<(), ProjectError> {
    check_project(caller, caller.owner.project.as_deref())
}

/// The same for what would belong to this project.
pub(crate) fn check_project(caller: &Caller, project: Option<&str>) -> Result<(), ProjectError> {
    let reachable = &caller.projects.reachable;
    if reachable.contains(project) {
        return Ok(());
    }
    let names = reachable.names().into_iter().flatten();
    let allowed = names.cloned().collect();
    Err(match project {
        Some(project) => ProjectError::Denied {
            project: ostler_model::visible(project).into_owned(),
            allowed,
        },
        None => ProjectError::Unnamed { allowed },
    })
}

/// Whether a caller sees what a directory holds: always, unless it is limited to projects that the
/// directory is in none of.
pub(crate) fn sees_directory(caller: &Caller, directory: &Path) -> bool {
    projects_contain(&caller.projects.visible, directory)
}

/// Whether a directory is in the tree of one of these projects, once the symbolic links of both are
/// resolved. Reads links.
#[must_use]
pub fn projects_contain(projects: &ProjectSet, directory: &Path) -> bool {
    let Some(names) = projects.names() else {
        return true;
    };
    let trees = names.iter().filter(|name| name.starts_with('/'));
    // One that does not exist holds nothing.
    let mut trees = trees.filter_map(|name| fs::canonicalize(name).ok());
    fs::canonicalize(directory).is_ok_and(|real| trees.any(|tree| real.starts_with(tree)))
}

/// Refuses a directory of which the caller sees nothing.
pub(crate) fn check_directory(caller: &Caller, directory: &Path) -> Result<(), ProjectError> {
    if sees_directory(caller, directory) {
        return Ok(());
    }
    let directory = directory.display().to_string();
    Err(ProjectError::Directory {
        directory: ostler_model::visible(&directory).into_owned(),
    })
}

/// The caller as it starts again what belongs to this owner: in the same project and for the same
/// task, where it belongs to a project.
pub(crate) fn starting_again(caller: &Caller, of: &Owner) -> Caller {
    let mut caller = caller.clone();
    if of.project.is_some() {
        caller.owner.project.clone_from(&of.project);
        caller.owner.task.clone_from(&of.task);
    }
    caller
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use ostler_model::{Principal, ProjectView, RequestChannel, Scope};

    use super::*;

    fn limited_to(visible: ProjectSet, reachable: ProjectSet) -> Caller {
        Caller {
            owner: owner(None),
            scope: Scope::Principal,
            projects: ProjectView { visible, reachable },
        }
    }

    fn owner(project: Option<&str>) -> Owner {
        Owner {
            principal: Principal::unix(1),
            project: project.map(str::to_owned),
            session: None,
            task: None,
            channel: RequestChannel::Network,
        }
    }

    #[test]
    fn what_is_created_belongs_to_a_project_that_may_be_changed() {
        let both = ProjectSet::named(["a", "b"]);
        let mut caller = limited_to(both, ProjectSet::named(["b"]));
        let unnamed = check_created(&caller).unwrap_err().to_string();
        assert_eq!(unnamed, "the request names no project; allowed: b");
        caller.owner.project = Some("a".to_owned());
        let denied = check_created(&caller).unwrap_err().to_string();
        assert!(
            denied.contains("'a'") && denied.ends_with("allowed: b"),
            "{denied}"
        );
        caller.owner.project = Some("b".to_owned());
        assert_eq!(check_created(&caller), Ok(()));
        let all = limited_to(ProjectSet::All, ProjectSet::All);
        assert_eq!(check_created(&all), Ok(()));
        assert_eq!(check_project(&all, Some("x")), Ok(()));
    }

    #[test]
    fn only_who_sees_it_is_told_that_it_may_not_be_changed() {
        let both = ProjectSet::named(["a", "b"]);
        let caller = limited_to(both, ProjectSet::named(["b"]));
        assert_eq!(read_only(&caller, &owner(Some("b"))), None);
        assert_eq!(read_only(&caller, &owner(Some("c"))), None);
        assert_eq!(read_only(&caller, &owner(None)), None);
        let project = "a".to_owned();
        let expected = Some(ProjectError::ReadOnly { project });
        assert_eq!(read_only(&caller, &owner(Some("a"))), expected);
    }

    #[test]
    fn a_directory_is_that_of_a_project_by_its_real_path() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for path in ["a/src", "b"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        symlink(root.join("b"), root.join("a/link")).unwrap();
        let project = root.join("a").display().to_string();
        let caller = limited_to(ProjectSet::named([project]), ProjectSet::none());
        let sees = |path: &str| check_directory(&caller, &root.join(path)).is_ok();
        assert!(sees("a") && sees("a/src") && sees("a/src/.."));
        assert!(!sees("b") && !sees("a/link") && !sees("a/../b") && !sees("") && !sees("a/none"));
        let all = limited_to(ProjectSet::All, ProjectSet::All);
        assert!(sees_directory(&all, &root.join("nowhere")));
        // The project's own name may be a link, too.
        symlink(root.join("a"), root.join("alias")).unwrap();
        let alias = root.join("alias").display().to_string();
        let caller = limited_to(
            ProjectSet::named([alias, "a".to_owned()]),
            ProjectSet::none(),
        );
        let sees = |path: &str| sees_directory(&caller, &root.join(path));
        assert!(sees("alias") && sees("a") && sees("alias/src"));
        assert!(!sees("b") && !sees("alias/link"));
    }

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
