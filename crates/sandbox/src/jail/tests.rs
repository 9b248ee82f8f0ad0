//! Plans are pure: what a specification compiles to, without a kernel.

use std::path::PathBuf;

use ostler_model::{ByteString, NetworkAccess, SandboxSpec};

use super::host_facts::{HostEntry, HostFacts, ResolvedPath};
use super::mount_op::{MountAccess, MountOp};
use super::plan::JailPlan;

/// A merged-/usr host with these directories.
fn host(directories: &[&str]) -> HostFacts {
    let mut host = HostFacts::default();
    for path in ["/usr", "/etc", "/opt"] {
        host.entries.insert(path.into(), HostEntry::Directory);
    }
    host.entries
        .insert("/bin".into(), HostEntry::Link("usr/bin".into()));
    host.entries.insert("/dev/null".into(), HostEntry::File);
    for path in directories {
        let resolved = ResolvedPath {
            path: path.into(),
            directory: true,
        };
        host.resolved.insert(PathBuf::from(path), resolved);
    }
    host
}

fn confinement(workspace: &str, home: &str) -> SandboxSpec {
    SandboxSpec {
        workspace: Some(ByteString::from(workspace)),
        home: Some(ByteString::from(home)),
        ..SandboxSpec::default()
    }
}

fn position(plan: &JailPlan, is: impl Fn(&MountOp) -> bool) -> Option<usize> {
    plan.ops.iter().position(is)
}

fn about(plan: &JailPlan, path: &str) -> Vec<String> {
    let at = |step: &&MountOp| {
        step.path()
            .is_some_and(|it| it.to_bytes() == path.as_bytes())
    };
    plan.ops
        .iter()
        .filter(at)
        .map(|step| step.name().to_owned())
        .collect()
}

#[test]
fn system_directories_come_before_the_seal_and_the_workspace_after() {
    let plan = JailPlan::compile(
        &confinement("/home/u/p", "/home/u"),
        &host(&["/home/u/p", "/home/u"]),
    )
    .unwrap();
    let seal = position(&plan, |step| *step == MountOp::Seal).unwrap();
    let attached = |path: &str| {
        position(
            &plan,
            |step| matches!(step, MountOp::Bind { at, .. } if at.to_bytes() == path.as_bytes()),
        )
    };
    assert!(attached("usr").unwrap() < seal);
    assert!(attached("home/u/p").unwrap() > seal);
    assert!(attached("bin").is_none());
    assert!(
        position(
            &plan,
            |step| matches!(step, MountOp::Link { at, .. } if at.to_bytes() == b"bin")
        )
        .is_some()
    );
    let home = position(
        &plan,
        |step| matches!(step, MountOp::RestoreDirectory { at, .. } if at.to_bytes() == b"home/u"),
    )
    .unwrap();
    assert!(home < attached("home/u/p").unwrap());
    assert_eq!(position(&plan, |step| *step == MountOp::Loopback), Some(0));
    assert!(
        plan.sources
            .iter()
            .all(|it| it.access != MountAccess::Write || it.path.to_bytes() == b"/home/u/p")
    );
}

#[test]
fn what_lies_in_what_is_shown_is_not_shown_again() {
    let mut confinement = confinement("/w", "/home/u");
    confinement.read = vec!["/usr/share".into(), "/w/sub".into(), "/missing".into()];
    let plan = JailPlan::compile(
        &confinement,
        &host(&["/w", "/home/u", "/usr/share", "/w/sub"]),
    )
    .unwrap();
    for path in ["usr/share", "w/sub", "missing"] {
        assert_eq!(about(&plan, path), Vec::<String>::new(), "{path}");
    }
}

#[test]
fn a_root_or_system_directory_as_home_is_left_alone() {
    for home in ["/", "/usr", "/dev"] {
        let plan = JailPlan::compile(&confinement("/w", home), &host(&["/w", home])).unwrap();
        assert!(
            !about(&plan, home.trim_start_matches('/')).contains(&"private directory".to_owned()),
            "{home}"
        );
    }
}

#[test]
fn a_home_within_a_system_directory_is_covered_by_one_of_ours() {
    let plan = JailPlan::compile(&confinement("/w", "/opt/u"), &host(&["/w", "/opt/u"])).unwrap();
    let held = position(
        &plan,
        |step| matches!(step, MountOp::SaveDirectory { at, .. } if at.to_bytes() == b"opt/u"),
    );
    assert_eq!(held, None, "the host's own would be writable");
    assert_eq!(about(&plan, "opt/u"), ["private directory"]);
}

#[test]
fn every_directory_on_the_way_to_what_is_protected_is_fenced_once() {
    let mut confinement = confinement("/w", "/home/u");
    confinement.protect = vec![".git/hooks".into(), "/w/.git/config".into()];
    let plan = JailPlan::compile(&confinement, &host(&["/w", "/home/u"])).unwrap();
    assert_eq!(about(&plan, "w/.git").len(), 1);
    assert_eq!(about(&plan, "w/.git/hooks").len(), 1);
    assert_eq!(about(&plan, "w/.git/config").len(), 1);
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    let good = confinement("/w", "/home/u");
    let host = host(&["/w", "/home/u"]);
    for change in [
        |it: &mut SandboxSpec| it.workspace = Some("relative".into()),
        |it: &mut SandboxSpec| it.read = vec!["/w/../etc".into()],
        |it: &mut SandboxSpec| it.write = vec!["/w\0".into()],
        |it: &mut SandboxSpec| it.protect = vec!["../x".into()],
        |it: &mut SandboxSpec| it.hide = vec!["/w".into()],
        |it: &mut SandboxSpec| it.workspace = Some("/gone".into()),
    ] {
        let mut bad = good.clone();
        change(&mut bad);
        let plan = JailPlan::compile(&bad, &host);
        // A path with a null byte cannot be looked up: it does not exist.
        assert!(plan.is_err() || bad.write == ["/w\0".into()], "{bad:?}");
    }
}

#[test]
fn names_are_resolved_by_the_proxy_wherever_the_host_configures_its_resolver() {
    let mut confinement = confinement("/w", "/home/u");
    confinement.network = NetworkAccess::AllowList { hosts: Vec::new() };
    let mut elsewhere = host(&["/w", "/home/u"]);
    let resolved = ResolvedPath {
        path: "/run/resolved/stub.conf".into(),
        directory: false,
    };
    elsewhere
        .resolved
        .insert(PathBuf::from("/etc/resolv.conf"), resolved.clone());
    let plan = JailPlan::compile(&confinement, &elsewhere).unwrap();
    assert_eq!(about(&plan, "run/resolved/stub.conf"), ["new root"]);
    let within = ResolvedPath {
        path: "/etc/resolv.conf".into(),
        ..resolved
    };
    elsewhere
        .resolved
        .insert(PathBuf::from("/etc/resolv.conf"), within);
    let plan = JailPlan::compile(&confinement, &elsewhere).unwrap();
    assert_eq!(about(&plan, "etc/resolv.conf"), ["replaced file"]);
    assert!(about(&plan, "etc/hosts").is_empty());
    let hosts = ResolvedPath {
        path: "/etc/hosts".into(),
        directory: false,
    };
    elsewhere
        .resolved
        .insert(PathBuf::from("/etc/hosts"), hosts);
    let plan = JailPlan::compile(&confinement, &elsewhere).unwrap();
    assert_eq!(about(&plan, "etc/hosts"), ["replaced file"]);
    confinement.network = NetworkAccess::Full;
    let plan = JailPlan::compile(&confinement, &elsewhere).unwrap();
    assert!(about(&plan, "etc/hosts").is_empty());
}

/// Where the scripts of a shell are attached, and what covers their surroundings.
fn around_scripts(plan: &JailPlan) -> (Option<usize>, Option<usize>, bool) {
    let over = |step: &MountOp| {
        matches!(step, MountOp::BindWithin { from, at } if from.as_c_str() == c"dev/.around-scripts"
            && at.as_c_str() == c"var/lib/ostler")
    };
    let attach = |step: &MountOp| matches!(step, MountOp::Bind { at, .. } if at.as_c_str() == c"var/lib/ostler/shell/bash");
    let masks = plan
        .ops
        .iter()
        .any(|step| matches!(step, MountOp::Mask { at } if at.as_c_str() == c"var/lib/ostler"));
    (position(plan, over), position(plan, attach), masks)
}

#[test]
fn the_scripts_of_a_shell_show_through_what_hides_them_and_nothing_else_does() {
    let state = "/var/lib/ostler";
    let mut host = host(&["/w", state, "/var/lib/ostler/shell/bash"]);
    host.entries.insert("/var/lib".into(), HostEntry::Directory);
    let mut confinement = confinement("/w", "/root");
    confinement.hide = vec![state.into()];
    confinement.read = vec![state.into()];
    let plan = JailPlan::compile(&confinement, &host).expect("compiled");
    assert_eq!(around_scripts(&plan), (None, None, true));
    confinement.scripts = Some("/var/lib/ostler/shell/bash".into());
    let plan = JailPlan::compile(&confinement, &host).expect("compiled");
    let (over, attach, masks) = around_scripts(&plan);
    assert!(over.is_some() && over < attach && !masks, "{:?}", plan.ops);
    let way = |step: &MountOp| matches!(step, MountOp::Directory { at, .. } if at.as_c_str() == c"dev/.around-scripts/shell/bash");
    let seal = position(&plan, |step| matches!(step, MountOp::Seal));
    assert!(position(&plan, way) < seal);
    let source = plan.sources.last().expect("one");
    assert_eq!(source.access, MountAccess::Read);
    // Where nothing shows the state directory, it holds the scripts alone.
    confinement.read.clear();
    confinement.hide.clear();
    let plan = JailPlan::compile(&confinement, &host).expect("compiled");
    assert_eq!(around_scripts(&plan).0, None);
    assert!(around_scripts(&plan).1.is_some());
}
