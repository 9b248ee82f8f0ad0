//! Who may receive a secret: one decision, made before the secret is looked up, so that a refusal
//! does not reveal whether it exists.

use std::path::Path;

use ostler_model::{ByteString, Owner, Principal, RequestChannel};

/// The binding of one secret in the settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretBinding {
    /// Who may use it.
    pub holders: SecretHolders,
    /// Absolute directories that a command must work in, or below; none permits every directory.
    pub projects: Vec<ByteString>,
}

/// The holders of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SecretHolders {
    /// The user of the unix socket; the default.
    #[default]
    LocalUser,
    /// Only these holders.
    Listed(Vec<SecretHolder>),
}

/// One holder of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretHolder {
    /// The user of the unix socket.
    LocalUser,
    /// A principal, through any API surface.
    Principal(Principal),
}

/// The position of a working directory relative to a binding's projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectMatch {
    /// The binding names no project.
    Anywhere,
    /// In one of them.
    Inside,
    /// In none of them.
    Outside,
}

/// The decision about a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretAccess {
    /// The secret may be used.
    Granted,
    /// The secret may not be used.
    Denied,
}

/// Decides whether a secret may be used.
#[must_use]
pub(crate) fn secret_access(
    holders: &SecretHolders,
    project: ProjectMatch,
    owner: &Owner,
) -> SecretAccess {
    let is_local = owner.channel == RequestChannel::Local;
    let is_holder = match holders {
        SecretHolders::LocalUser => is_local,
        SecretHolders::Listed(listed) => listed.iter().any(|holder| match holder {
            SecretHolder::LocalUser => is_local,
            SecretHolder::Principal(principal) => *principal == owner.principal,
        }),
    };
    match project {
        ProjectMatch::Anywhere | ProjectMatch::Inside if is_holder => SecretAccess::Granted,
        ProjectMatch::Anywhere | ProjectMatch::Inside | ProjectMatch::Outside => {
            SecretAccess::Denied
        }
    }
}

impl SecretBinding {
    /// Matches a working directory. Symbolic links are followed; a path that does not exist is
    /// outside.
    #[must_use]
    pub fn match_project(&self, cwd: &Path) -> ProjectMatch {
        if self.projects.is_empty() {
            return ProjectMatch::Anywhere;
        }
        let Ok(cwd) = std::fs::canonicalize(cwd) else {
            return ProjectMatch::Outside;
        };
        let real = |path: &ByteString| std::fs::canonicalize(path.as_path()).ok();
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

    fn owner(principal: &str, channel: RequestChannel) -> Owner {
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
        let listed = |holders: &[SecretHolder]| SecretHolders::Listed(holders.to_vec());
        let ann = SecretHolder::Principal(Principal("token:ann".to_owned()));
        let uid = SecretHolder::Principal(Principal::unix(7));
        let (local, network) = (RequestChannel::Local, RequestChannel::Network);
        for (holders, principal, channel, given) in [
            (SecretHolders::LocalUser, "uid:7", local, true),
            (SecretHolders::LocalUser, "uid:7", network, false),
            (SecretHolders::LocalUser, "token:ann", network, false),
            (listed(&[]), "uid:7", local, false),
            (listed(&[SecretHolder::LocalUser]), "uid:7", local, true),
            (listed(&[SecretHolder::LocalUser]), "uid:7", network, false),
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
            (
                listed(&[ann, SecretHolder::LocalUser]),
                "uid:7",
                local,
                true,
            ),
            (listed(&[uid]), "uid:7", network, true),
        ] {
            let owner = owner(principal, channel);
            for (project, may) in [
                (ProjectMatch::Anywhere, given),
                (ProjectMatch::Inside, given),
                (ProjectMatch::Outside, false),
            ] {
                let decision = secret_access(&holders, project, &owner);
                assert_eq!(
                    decision == SecretAccess::Granted,
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
        let binding = SecretBinding {
            projects: vec![ByteString::from(scratch.path().join("app"))],
            ..SecretBinding::default()
        };
        assert_eq!(binding.match_project(&inside), ProjectMatch::Inside);
        assert_eq!(binding.match_project(&outside), ProjectMatch::Outside);
        assert_eq!(binding.match_project(&planted), ProjectMatch::Outside);
        assert_eq!(
            binding.match_project(&scratch.path().join("gone")),
            ProjectMatch::Outside
        );
        assert_eq!(
            SecretBinding::default().match_project(&outside),
            ProjectMatch::Anywhere
        );
    }
}
