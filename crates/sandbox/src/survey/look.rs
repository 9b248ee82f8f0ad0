//! Which file systems are asked about what, and what they answered before.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ostler_model::confinement::Confinement;
use ostler_model::{Ability, Degraded, Text};

use super::trial;

/// File systems whose answers are remembered; with more of them, all are asked again.
const ANSWERS_MAX: usize = 256;

/// What a file system is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    /// Whether Landlock's rules can name its files.
    Landlock,
    /// Whether it can be mounted with other ids.
    Mapped,
    /// Whether it can lie under an overlay whose upper side is on the file system with this
    /// number.
    Overlay { upper: u64 },
}

/// None for yes, else why not.
type Answer = Option<String>;

/// What was found out, by file system (`st_dev`): doing it again would only tell the same.
#[derive(Debug, Default)]
pub struct Survey {
    state: PathBuf,
    answers: Mutex<BTreeMap<(u64, Question), Answer>>,
}

impl Survey {
    /// Of a place that keeps the upper sides of overlays below `state`.
    #[must_use]
    pub fn new(state: PathBuf) -> Self {
        Self {
            state,
            answers: Mutex::default(),
        }
    }

    /// What is missing on the file systems that this confinement shows writable, one entry
    /// for each thing and file system. Walls it does without are not asked about.
    #[must_use]
    pub fn look(&self, wanted: &Confinement) -> Vec<Degraded> {
        let mut missing = Vec::new();
        for path in wanted.workspace.iter().chain(&wanted.write) {
            let is_workspace = wanted.workspace.as_ref() == Some(path);
            self.ask_all(to_path(path), wanted, is_workspace, &mut missing);
        }
        missing.dedup();
        missing
    }

    fn ask_all(
        &self,
        path: &Path,
        wanted: &Confinement,
        is_workspace: bool,
        missing: &mut Vec<Degraded>,
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
        let overlay = Question::Overlay {
            upper: upper.metadata().map_or(0, |upper| upper.dev()),
        };
        let questions = [
            (Ability::Landlock, Question::Landlock, true),
            (Ability::MappedWorkspace, Question::Mapped, is_root),
            (Ability::Overlay, overlay, is_workspace && wanted.overlay),
        ];
        for (ability, question, _) in questions
            .into_iter()
            .filter(|(ability, _, applies)| *applies && !wanted.without.contains(ability))
        {
            let answer = self.answer(facts.dev(), question, || match question {
                Question::Landlock => trial::landlock(&directory),
                Question::Mapped => trial::mapped(&directory),
                Question::Overlay { .. } => trial::overlay(path, &upper),
            });
            missing.extend(answer.map(|why| Degraded {
                ability,
                reason: format!("{}: {why}", path.display()),
            }));
        }
    }

    fn answer(&self, device: u64, question: Question, ask: impl FnOnce() -> Answer) -> Answer {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = answers.get(&(device, question)) {
            return known.clone();
        }
        if answers.len() >= ANSWERS_MAX {
            answers.clear();
        }
        let answer = ask();
        answers.insert((device, question), answer.clone());
        answer
    }
}

/// What is missing on the file systems that this confinement shows writable, without memory.
#[must_use]
pub fn survey(wanted: &Confinement) -> Vec<Degraded> {
    Survey::default().look(wanted)
}

fn to_path(text: &Text) -> &Path {
    Path::new(OsStr::from_bytes(text.as_bytes()))
}
