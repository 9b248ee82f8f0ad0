//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Directories of generated or installed files.
const NOT_OURS: &[&str] = &["target", "node_modules", "__pycache__", ".git", ".tools"];

/// All files below a directory with one of these endings, sorted; all files where none is given.
pub(crate) fn files_below(dir: &Path, endings: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(dir, endings, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(dir: &Path, endings: &[&str], found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("{}", dir.display()))? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        if kind.is_dir() && !NOT_OURS.iter().any(|skip| name == *skip) {
            collect(&path, endings, found)?;
        } else if kind.is_file() && has_ending(&path, endings) {
            found.push(path);
        }
    }
    Ok(())
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    endings.is_empty() || ending.is_some_and(|ending| endings.contains(&ending))
}
