//! What helps where something is missing.

use ostler_model::Ability;

/// What to do about a missing piece; none where nothing on this machine helps.
pub(super) const fn of(ability: Ability) -> Option<&'static str> {
    match ability {
        Ability::OwnCgroup
        | Ability::PidsLimit
        | Ability::MemoryLimit
        | Ability::CpuLimit
        | Ability::Freezer => Some(
            "run the daemon as root, or in a delegated cgroup: systemd-run --user --scope -p \
             Delegate=yes ostler serve",
        ),
        Ability::Durable => Some("start it with the ostler program, which brings the keeper"),
        Ability::Namespaces | Ability::NetworkNamespace | Ability::OwnRoot | Ability::FreshProc => {
            Some(
                "allow user namespaces: sysctl user.max_user_namespaces > 0, \
                 kernel.unprivileged_userns_clone=1, \
                 kernel.apparmor_restrict_unprivileged_userns=0; in a container, allow unshare, \
                 mount and an unmasked /proc",
            )
        }
        Ability::SpareIds => Some(
            "as root, ids from 100000 on must be free: look at /etc/subuid, and in a container \
             map more ids into it",
        ),
        Ability::MappedWorkspace => Some(
            "work on ext4, xfs, btrfs or (from Linux 6.3) tmpfs: idmapped mounts need Linux 5.12 \
             and such a file system",
        ),
        Ability::Overlay => Some(
            "work on a file system overlayfs takes as a layer (ext4, xfs, btrfs, tmpfs) with \
             Linux 5.11 or later",
        ),
        Ability::Landlock => Some(
            "boot a kernel from 5.13 on with landlock among its LSMs (lsm=landlock,… on the \
             kernel's command line)",
        ),
        Ability::Seccomp => Some("boot a kernel with CONFIG_SECCOMP_FILTER"),
        Ability::Gate => Some("start it with the ostler program, which brings the gate"),
        Ability::CleanEnvironment
        | Ability::OwnGroup
        | Ability::TreeKill
        | Ability::ProcessLimits
        | Ability::DiskLimit
        | Ability::NoNewPrivileges
        | Ability::NoCapabilities => None,
    }
}
