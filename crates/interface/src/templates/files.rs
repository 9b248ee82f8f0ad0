//! The definition files of a user and of a project.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ostler_engine::{is_trusted_owner, projects_contain};
use ostler_model::{ErrorCode, ProjectSet};
use ostler_template::{FILE_BYTES, TemplateCatalog, TemplateProblem, TemplateSource, TemplateTier};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::ApiError;

/// The directory of a project's definition files, below the project or a directory above.
pub const DIRECTORY: &str = ".ostler/templates";
/// The suffix of definition files; others are ignored.
const SUFFIX: &str = "toml";
/// The most definition files of a directory that are read, in the order of their names.
const FILES: usize = 128;
/// The most entries of a directory that are looked at.
const ENTRIES: usize = 4_096;
/// The most directories upwards that are searched.
const ANCESTORS: usize = 64;

/// Where definition files are looked for; by default, only the shipped templates are there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TemplateFiles {
    /// The user's directory; none has no files.
    pub user_dir: Option<PathBuf>,
}

/// The files of one directory.
#[derive(Debug, Default)]
struct DirectoryFiles {
    sources: Vec<TemplateSource>,
    problems: Vec<TemplateProblem>,
}

impl TemplateFiles {
    /// The shipped templates, the user's, and those of the project that `cwd` is in: what the files
    /// contain now. Of a project that is in none of `projects`, none are read. Reads files.
    #[must_use]
    pub fn read(&self, cwd: Option<&Path>, projects: &ProjectSet) -> TemplateCatalog {
        let mut files = DirectoryFiles::default();
        if let Some(dir) = &self.user_dir {
            files.add_dir(dir, TemplateTier::User, dir);
        }
        if let Some(cwd) = cwd
            && let Some(dir) = project_dir(cwd)
            && projects_contain(projects, &dir)
        {
            files.add_dir(&dir, TemplateTier::Project, cwd);
        }
        TemplateCatalog::from_sources(&files.sources, files.problems)
    }

    /// As [`read`](Self::read), off the threads that serve requests.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn load(
        &self,
        cwd: Option<PathBuf>,
        projects: &ProjectSet,
    ) -> Result<TemplateCatalog, ApiError> {
        let (files, projects) = (self.clone(), projects.clone());
        let task = tokio::task::spawn_blocking(move || files.read(cwd.as_deref(), &projects));
        task.await.map_err(|_| {
            let message = "reading the templates was aborted";
            ApiError::new(ErrorCode::Internal, message)
        })
    }
}

/// The nearest directory of definition files from `cwd` upwards; one behind a symbolic link is none.
fn project_dir(cwd: &Path) -> Option<PathBuf> {
    let here = fs::canonicalize(cwd).ok()?;
    let mut dirs = here.ancestors().take(ANCESTORS);
    dirs.find_map(|dir| {
        let files = dir.join(DIRECTORY);
        let mut own = files.ancestors().take_while(|it| *it != dir);
        own.all(|it| it.symlink_metadata().is_ok_and(|it| it.is_dir()))
            .then_some(files)
    })
}

impl DirectoryFiles {
    fn add_dir(&mut self, dir: &Path, tier: TemplateTier, cwd: &Path) {
        let paths = match definition_files(dir) {
            Ok(paths) => paths,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.add_problem(dir, format!("cannot be read: {error}")),
        };
        if paths.len() > FILES {
            let count = paths.len();
            self.add_problem(
                dir,
                format!("has {count} files; the first {FILES} are read"),
            );
        }
        for path in paths.iter().take(FILES) {
            match read_file(path, cwd) {
                Ok(text) => self.sources.push(TemplateSource {
                    tier,
                    name: path.display().to_string(),
                    text,
                }),
                Err(error) => self.add_problem(path, format!("cannot be read: {error}")),
            }
        }
    }

    fn add_problem(&mut self, path: &Path, message: String) {
        self.problems.push(TemplateProblem {
            file: path.display().to_string(),
            line: None,
            message,
        });
    }
}

/// The definition files of a directory, by name.
fn definition_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir)?.take(ENTRIES);
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| entry.map(|it| it.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| path.extension().is_some_and(|suffix| suffix == SUFFIX));
    paths.sort();
    Ok(paths)
}

/// The text of a file that root, this user, or the owner of `cwd` owns: a directory above the
/// project may be another user's.
fn read_file(path: &Path, cwd: &Path) -> io::Result<String> {
    // A named pipe without a writer would block; a link would have any file read, and quoted in what
    // is said of it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => io::Error::other("it is a symbolic link, which is not followed"),
        error => error.into(),
    })?;
    let file = File::from(file);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let uid = metadata.uid();
    if !is_trusted_owner(uid, cwd) {
        let cwd = cwd.display();
        return Err(io::Error::other(format!(
            "it belongs to user {uid}, who neither runs this program nor owns {cwd}"
        )));
    }
    let mut text = String::new();
    // One byte more than allowed is enough for the parser to refuse it.
    let limit = u64::try_from(FILE_BYTES + 1).unwrap_or(u64::MAX);
    file.take(limit).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn define(dir: &Path, file: &str, id: &str) {
        fs::create_dir_all(dir).unwrap();
        let text = format!("[[template]]\nid = \"{id}\"\ncommand = \"true\"\n");
        fs::write(dir.join(file), text).unwrap();
    }

    fn problems(catalog: &TemplateCatalog) -> String {
        let problems = catalog.problems().iter().map(ToString::to_string);
        problems.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn files_of_the_user_and_of_the_nearest_project_are_read() {
        let root = tempfile::tempdir().unwrap();
        let (user, project) = (root.path().join("user"), root.path().join("project"));
        define(&user, "a.toml", "of_user");
        define(&user, "notes.txt", "no_definition");
        define(&project.join(DIRECTORY), "b.toml", "of_project");
        let (deep, inner) = (project.join("src/deep"), project.join("inner"));
        fs::create_dir_all(&deep).unwrap();
        define(&inner.join(DIRECTORY), "c.toml", "of_inner");
        let files = TemplateFiles {
            user_dir: Some(user),
        };
        let has = |cwd: Option<&Path>, id: &str| {
            let catalog = files.read(cwd, &ProjectSet::All);
            catalog.find(id).is_some()
        };
        assert!(has(None, "of_user") && !has(None, "of_project") && has(None, "init_project"));
        assert!(has(Some(&deep), "of_user") && has(Some(&deep), "of_project"));
        assert!(has(Some(&inner), "of_inner") && !has(Some(&inner), "of_project"));
        assert!(!has(Some(&deep), "no_definition"));
        let real = fs::canonicalize(&inner).unwrap().display().to_string();
        let in_inner = |cwd: &Path| files.read(Some(cwd), &ProjectSet::named([real.as_str()]));
        assert!(in_inner(&inner).find("of_inner").is_some());
        let outside = in_inner(&deep);
        assert!(outside.find("of_user").is_some() && outside.find("of_project").is_none());
    }

    #[test]
    fn what_is_no_readable_file_is_a_problem_and_the_rest_is_used() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join(DIRECTORY);
        define(&dir, "a.toml", "good");
        fs::create_dir(dir.join("b.toml")).unwrap();
        symlink("nowhere", dir.join("c.toml")).unwrap();
        symlink("/dev/zero", dir.join("d.toml")).unwrap();
        fs::write(dir.join("e.toml"), [0xff]).unwrap();
        fs::write(dir.join("f.toml"), " ".repeat(FILE_BYTES * 2)).unwrap();
        let fifo = rustix::fs::CWD;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(fifo, dir.join("g.toml"), kind, Mode::RUSR, 0).unwrap();
        let catalog = TemplateFiles::default().read(Some(root.path()), &ProjectSet::All);
        assert!(catalog.find("good").is_some());
        let problems = problems(&catalog);
        for name in ["b", "c", "d", "e", "f", "g"] {
            assert!(
                problems.contains(&format!("{name}.toml")),
                "{name}: {problems}"
            );
        }
        assert_eq!(catalog.problems().len(), 6, "{problems}");
    }

    #[test]
    fn a_directory_with_too_many_files_says_so() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join(DIRECTORY);
        for number in 0..=FILES {
            define(&dir, &format!("{number:03}.toml"), &format!("t{number}"));
        }
        let catalog = TemplateFiles::default().read(Some(root.path()), &ProjectSet::All);
        assert!(catalog.find("t127").is_some() && catalog.find("t128").is_none());
        assert!(problems(&catalog).contains("has 129 files"));
    }
}
