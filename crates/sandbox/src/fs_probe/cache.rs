//! Decides which file systems are probed for what, and caches the results.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ostler_model::sandbox_spec::SandboxSpec;
use ostler_model::{ByteString, Capability, MissingCapability};
use parking_lot::Mutex;

use super::checks;

/// How many file systems are cached; with more of them, the cache is cleared.
const CACHE_MAX: usize = 256;

/// A feature to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FsCheck {
    /// Whether Landlock rules can name its files.
    Landlock,
    /// Whether it supports idmapped mounts.
    Idmapped,
    /// Whether it can be the lower layer of an overlay whose upper layer is on the file system with
    /// this device number.
    Overlay { upper: u64 },
}

/// None where the feature is supported, else why not.
type MissingReason = Option<String>;

/// Results by file system (`st_dev`): probing again would give the same.
#[derive(Debug, Default)]
pub struct FsProbe {
    state: PathBuf,
    cache: Mutex<BTreeMap<(u64, FsCheck), MissingReason>>,
}

impl FsProbe {
    /// A probe for a backend that keeps the upper layers of overlays below `state`.
    #[must_use]
    pub fn new(state: PathBuf) -> Self {
        Self {
            state,
            cache: Mutex::default(),
        }
    }

    /// The features missing on the file systems that this sandbox makes writable, one entry for
    /// each feature and file system. Restrictions it does without are not probed.
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
        // A path that does not exist is not shown: nothing is missing for it.
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
        let mut cache = self.cache.lock();
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

/// As [`FsProbe::missing`], without a cache.
#[must_use]
pub fn probe_filesystems(spec: &SandboxSpec) -> Vec<MissingCapability> {
    FsProbe::default().missing(spec)
}

fn to_path(text: &ByteString) -> &Path {
    Path::new(OsStr::from_bytes(text.as_bytes()))
}
