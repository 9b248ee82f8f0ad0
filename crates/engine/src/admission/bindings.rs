//! Who is given a secret: one decision, made before anybody looks whether there is one, so that
//! a refusal tells nothing about it.

use std::path::Path;

use ostler_model::{Channel, Owner, Principal, Text};

/// What the settings say about one secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Binding {
    /// Who is given it.
    pub holders: Holders,
    /// Absolute directories that a command must work in, or below; none permits every directory.
    pub projects: Vec<Text>,
}

/// Who is given a secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Holders {
    /// The user of the unix socket: what holds where nothing is said.
    #[default]
    LocalUser,
    /// These and nobody else.
    Listed(Vec<Holder>),
}

/// One who is given a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// The user of the unix socket.
    LocalUser,
    /// A principal, whichever way it asks.
    Principal(Principal),
}

/// Where a command works, seen from the projects of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectMatch {
    /// The binding names no project.
    Anywhere,
    /// In one of them.
    Inside,
    /// In none of them.
    Outside,
}

/// Whether a secret is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is.
    Given,
    /// It is not.
    Withheld,
}

/// The decision.
#[must_use]
pub fn decide(holders: &Holders, project: ProjectMatch, owner: &Owner) -> Decision {
    let is_local = owner.channel == Channel::Local;
    let is_holder = match holders {
        Holders::LocalUser => is_local,
        Holders::Listed(listed) => listed.iter().any(|holder| match holder {
            Holder::LocalUser => is_local,
            Holder::Principal(principal) => *principal == owner.principal,
        }),
    };
    match project {
        ProjectMatch::Anywhere | ProjectMatch::Inside if is_holder => Decision::Given,
        ProjectMatch::Anywhere | ProjectMatch::Inside | ProjectMatch::Outside => Decision::Withheld,
    }
}

impl Binding {
    /// Where a working directory lies. Links are followed; what cannot be found lies outside.
    #[must_use]
    pub fn match_project(&self, cwd: &Path) -> ProjectMatch {
        if self.projects.is_empty() {
            return ProjectMatch::Anywhere;
        }
        let Ok(cwd) = std::fs::canonicalize(cwd) else {
            return ProjectMatch::Outside;
        };
        let real = |path: &Text| std::fs::canonicalize(path.as_path()).ok();
        let mut projects = self.projects.iter().filter_map(real);
        if projects.any(|project| cwd.starts_with(project)) {
            ProjectMatch::Inside
        } else {
            ProjectMatch::Outside
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(principal: &str, channel: Channel) -> Owner {
        Owner {
            principal: Principal(principal.to_owned()),
            project: None,
            session: None,
            task: None,
            channel,
        }
    }

    #[test]
    fn every_pair_of_holders_and_callers() {
        let listed = |holders: &[Holder]| Holders::Listed(holders.to_vec());
        let ann = Holder::Principal(Principal("token:ann".to_owned()));
        let uid = Holder::Principal(Principal::unix(7));
        let (local, network) = (Channel::Local, Channel::Network);
        for (holders, principal, channel, given) in [
            (Holders::LocalUser, "uid:7", local, true),
            (Holders::LocalUser, "uid:7", network, false),
            (Holders::LocalUser, "token:ann", network, false),
            (listed(&[]), "uid:7", local, false),
            (listed(&[Holder::LocalUser]), "uid:7", local, true),
            (listed(&[Holder::LocalUser]), "uid:7", network, false),
            (
                listed(std::slice::from_ref(&ann)),
                "token:ann",
                network,
                true,
            ),
            (
                listed(std::slice::from_ref(&ann)),
                "token:bob",
                network,
                false,
            ),
            (listed(std::slice::from_ref(&ann)), "uid:7", local, false),
            (listed(&[ann, Holder::LocalUser]), "uid:7", local, true),
            (listed(&[uid]), "uid:7", network, true),
        ] {
            let owner = owner(principal, channel);
            for (project, may) in [
                (ProjectMatch::Anywhere, given),
                (ProjectMatch::Inside, given),
                (ProjectMatch::Outside, false),
            ] {
                let decision = decide(&holders, project, &owner);
                assert_eq!(
                    decision == Decision::Given,
                    may,
                    "{holders:?} {owner:?} {project:?}"
                );
            }
        }
    }

    #[test]
    fn a_project_is_where_links_lead() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (inside, outside) = (scratch.path().join("app/src"), scratch.path().join("other"));
        std::fs::create_dir_all(&inside).expect("made");
        std::fs::create_dir_all(&outside).expect("made");
        let planted = scratch.path().join("app/out");
        std::os::unix::fs::symlink(&outside, &planted).expect("linked");
        let binding = Binding {
            projects: vec![Text::from(scratch.path().join("app"))],
            ..Binding::default()
        };
        assert_eq!(binding.match_project(&inside), ProjectMatch::Inside);
        assert_eq!(binding.match_project(&outside), ProjectMatch::Outside);
        assert_eq!(binding.match_project(&planted), ProjectMatch::Outside);
        assert_eq!(
            binding.match_project(&scratch.path().join("gone")),
            ProjectMatch::Outside
        );
        assert_eq!(
            Binding::default().match_project(&outside),
            ProjectMatch::Anywhere
        );
    }
}
