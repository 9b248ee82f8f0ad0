//! Which file systems are asked about what, and what they answered before.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ostler_model::sandbox_spec::SandboxSpec;
use ostler_model::{ByteString, Capability, MissingCapability};

use super::checks;

/// File systems whose answers are remembered; with more of them, all are asked again.
const CACHE_MAX: usize = 256;

/// What a file system is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FsCheck {
    /// Whether Landlock's rules can name its files.
    Landlock,
    /// Whether it can be mounted with other ids.
    Idmapped,
    /// Whether it can lie under an overlay whose upper side is on the file system with this
    /// number.
    Overlay { upper: u64 },
}

/// None for yes, else why not.
type MissingReason = Option<String>;

/// What was found out, by file system (`st_dev`): doing it again would only tell the same.
#[derive(Debug, Default)]
pub struct FsProbe {
    state: PathBuf,
    cache: Mutex<BTreeMap<(u64, FsCheck), MissingReason>>,
}

impl FsProbe {
    /// Of a place that keeps the upper sides of overlays below `state`.
    #[must_use]
    pub fn new(state: PathBuf) -> Self {
        Self {
            state,
            cache: Mutex::default(),
        }
    }

    /// What is missing on the file systems that this confinement shows writable, one entry
    /// for each thing and file system. Walls it does without are not asked about.
    #[must_use]
    pub fn missing(&self, spec: &SandboxSpec) -> Vec<MissingCapability> {
        let mut missing = Vec::new();
        for path in spec.workspace.iter().chain(&spec.write) {
            let is_workspace = spec.workspace.as_ref() == Some(path);
            self.check_path(to_path(path), spec, is_workspace, &mut missing);
        }
        missing.dedup();
        missing
    }

    fn check_path(
        &self,
        path: &Path,
        spec: &SandboxSpec,
        is_workspace: bool,
        missing: &mut Vec<MissingCapability>,
    ) {
        // What is not there is not shown: nothing is missing for it.
        let Ok(directory) = File::open(path) else {
            return;
        };
        let Ok(facts) = directory.metadata() else {
            return;
        };
        let is_root = rustix::process::geteuid().is_root();
        let upper = self.state.clone();
        let overlay = FsCheck::Overlay {
            upper: upper.metadata().map_or(0, |upper| upper.dev()),
        };
        let checks = [
            (Capability::Landlock, FsCheck::Landlock, true),
            (Capability::MappedWorkspace, FsCheck::Idmapped, is_root),
            (Capability::Overlay, overlay, is_workspace && spec.overlay),
        ];
        for (ability, question, _) in checks
            .into_iter()
            .filter(|(ability, _, applies)| *applies && !spec.without.contains(ability))
        {
            let reason = self.cached_check(facts.dev(), question, || match question {
                FsCheck::Landlock => checks::check_landlock(&directory),
                FsCheck::Idmapped => checks::check_idmapped(&directory),
                FsCheck::Overlay { .. } => checks::check_overlay(path, &upper),
            });
            missing.extend(reason.map(|why| MissingCapability {
                ability,
                reason: format!("{}: {why}", path.display()),
            }));
        }
    }

    fn cached_check(
        &self,
        device: u64,
        check: FsCheck,
        run_check: impl FnOnce() -> MissingReason,
    ) -> MissingReason {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cache.get(&(device, check)) {
            return known.clone();
        }
        if cache.len() >= CACHE_MAX {
            cache.clear();
        }
        let reason = run_check();
        cache.insert((device, check), reason.clone());
        reason
    }
}

/// What is missing on the file systems that this confinement shows writable, without memory.
#[must_use]
pub fn probe_filesystems(spec: &SandboxSpec) -> Vec<MissingCapability> {
    FsProbe::default().missing(spec)
}

fn to_path(text: &ByteString) -> &Path {
    Path::new(OsStr::from_bytes(text.as_bytes()))
}
