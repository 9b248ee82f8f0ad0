//! Names of file system types.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// The type of the file system that contains the file, as mount(8) prints it.
pub(super) fn fs_type_of(file: &File) -> String {
    let device = file.metadata().map_or(0, |facts| facts.dev());
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    parse_fs_type(&text, rustix::fs::major(device), rustix::fs::minor(device))
        .unwrap_or_else(|| "this file system".to_owned())
}

/// Parses the text of `/proc/self/mountinfo` (proc(5)).
pub(super) fn parse_fs_type(mountinfo: &str, major: u32, minor: u32) -> Option<String> {
    let device = format!("{major}:{minor}");
    let line = mountinfo
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(&device))?;
    let (_, after) = line.split_once(" - ")?;
    after.split(' ').next().map(str::to_owned)
}
