//! Hints about missing capabilities.

use ostler_model::Capability;

/// What to do about a missing capability; none where nothing on this machine helps.
pub(super) const fn remedy_for(ability: Capability) -> Option<&'static str> {
    match ability {
        Capability::OwnCgroup
        | Capability::PidsLimit
        | Capability::MemoryLimit
        | Capability::CpuLimit
        | Capability::Freezer => Some(
            "run the daemon as root, or in a delegated cgroup: systemd-run --user --scope -p \
             Delegate=yes ostler serve",
        ),
        Capability::Durable => Some("start it with the ostler program, which brings the keeper"),
        Capability::Namespaces
        | Capability::NetworkNamespace
        | Capability::OwnRoot
        | Capability::FreshProc => Some(
            "allow user namespaces: sysctl user.max_user_namespaces > 0, \
                 kernel.unprivileged_userns_clone=1, \
                 kernel.apparmor_restrict_unprivileged_userns=0; in a container, allow unshare, \
                 mount and an unmasked /proc",
        ),
        Capability::SpareIds => Some(
            "as root, ids from 100000 on must be free: look at /etc/subuid, and in a container \
             map more ids into it",
        ),
        Capability::MappedWorkspace => Some(
            "work on ext4, xfs, btrfs or (from Linux 6.3) tmpfs: idmapped mounts need Linux 5.12 \
             and such a file system",
        ),
        Capability::Overlay => Some(
            "work on a file system overlayfs takes as a layer (ext4, xfs, btrfs, tmpfs) with \
             Linux 5.11 or later",
        ),
        Capability::Landlock => Some(
            "boot a kernel from 5.13 on with landlock among its LSMs (lsm=landlock,… on the \
             kernel's command line)",
        ),
        Capability::Seccomp => Some("boot a kernel with CONFIG_SECCOMP_FILTER"),
        Capability::Gate => Some("start it with the ostler program, which brings the gate"),
        Capability::CleanEnvironment
        | Capability::OwnGroup
        | Capability::TreeKill
        | Capability::ProcessLimits
        | Capability::DiskLimit
        | Capability::NoNewPrivileges
        | Capability::NoCapabilities => None,
    }
}
