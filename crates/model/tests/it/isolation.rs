//! Resolution of isolation: for every request and every host, level high is complete, or lacks
//! only what was allowed to be missing and is reported.

use ostler_model::sandbox_spec::{HostPattern, HostRule, NetworkAccess, SandboxSpec};
use ostler_model::{
    ByteString, Capability, CapabilitySet, IsolationLevel, IsolationRequest, LimitBackend, Limits,
    MissingCapability, resolve_isolation,
};
use proptest::prelude::*;

fn some(of: &'static [Capability]) -> impl Strategy<Value = Vec<Capability>> {
    proptest::sample::subsequence(of, 0..=of.len())
}

fn abilities() -> impl Strategy<Value = CapabilitySet> {
    (some(&Capability::ALL), any::<bool>()).prop_map(|(present, root)| {
        let absent = Capability::ALL.iter().filter(|it| !present.contains(it));
        let missing = absent.map(|it| MissingCapability {
            ability: *it,
            reason: format!("no {} here", it.as_str()),
        });
        CapabilitySet {
            missing: missing.collect(),
            present,
            backend: LimitBackend::None,
            root,
        }
    })
}

fn network() -> impl Strategy<Value = NetworkAccess> {
    let host = HostPattern::Name("example.org".to_owned());
    let hosts = vec![HostRule {
        host,
        ports: Vec::new(),
    }];
    prop_oneof![
        Just(NetworkAccess::None),
        Just(NetworkAccess::Full),
        Just(NetworkAccess::AllowList { hosts }),
    ]
}

fn confinement() -> impl Strategy<Value = SandboxSpec> {
    (any::<bool>(), any::<bool>(), network()).prop_map(|(workspace, overlay, network)| {
        SandboxSpec {
            workspace: workspace.then(|| ByteString::from("/w")),
            overlay: workspace && overlay,
            network,
            ..SandboxSpec::default()
        }
    })
}

fn request() -> impl Strategy<Value = IsolationRequest> {
    let level = prop_oneof![
        Just(IsolationLevel::Basic),
        Just(IsolationLevel::Medium),
        Just(IsolationLevel::High),
    ];
    let limits =
        (any::<Option<u32>>(), any::<Option<u64>>()).prop_map(|(pids, disk_bytes)| Limits {
            pids,
            disk_bytes,
            ..Limits::default()
        });
    let confinement = proptest::option::of(confinement());
    (level, limits, confinement, some(&Capability::ALL)).prop_map(
        |(level, limits, confinement, degradable)| IsolationRequest {
            level,
            limits,
            demanded: Limits::default(),
            confinement,
            container: None,
            degradable,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn level_high_is_whole_or_says_what_it_was_allowed_to_lack(
        request in request(), abilities in abilities(),
    ) {
        let high = request.level == IsolationLevel::High;
        match resolve_isolation(request.clone(), &abilities) {
            Ok(policy) => {
                // Processes can be counted without a cgroup, in a namespace of their own.
                let is_there = |it: &Capability| abilities.has(*it) || (!abilities.root && *it == Capability::PidsLimit);
                prop_assert!(policy.in_force.iter().all(is_there));
                prop_assert!(policy.missing.iter().all(|it| !abilities.has(it.ability)));
                prop_assert_eq!(policy.confinement.is_some(), high);
                if let Some(sandbox) = policy.confinement {
                    let may = |it: Capability| (it == Capability::OwnCgroup && !abilities.root) || request.degradable.contains(&it);
                    prop_assert!(policy.missing.iter().all(|it| may(it.ability)));
                    let left_out: Vec<_> = policy.missing.iter().map(|it| it.ability).collect();
                    prop_assert_eq!(sandbox.without, left_out);
                }
            }
            Err(unmet) => {
                prop_assert!(high);
                prop_assert!(!unmet.missing.is_empty());
                for lack in &unmet.missing {
                    let dispensable = lack.ability != Capability::SpareIds;
                    prop_assert!(!(dispensable && request.degradable.contains(&lack.ability)));
                    prop_assert!(unmet.to_string().contains(&lack.reason));
                }
            }
        }
    }

    #[test]
    fn what_a_host_can_do_less_never_opens_what_was_closed(
        request in request(), abilities in abilities(), lost in proptest::sample::select(&Capability::ALL),
    ) {
        let refused = resolve_isolation(request.clone(), &abilities).is_err();
        let reason = "gone".to_owned();
        let fewer = abilities.without(vec![MissingCapability { ability: lost, reason }]);
        prop_assert!(!fewer.has(lost));
        if refused {
            prop_assert!(resolve_isolation(request, &fewer).is_err());
        }
    }

    #[test]
    fn root_is_never_itself_in_a_jail(mut request in request(), abilities in abilities()) {
        request.level = IsolationLevel::High;
        request.degradable = Capability::ALL.to_vec();
        let mut abilities = abilities.without(vec![MissingCapability {
            ability: Capability::SpareIds,
            reason: "none".to_owned(),
        }]);
        abilities.root = true;
        prop_assert!(resolve_isolation(request, &abilities).is_err());
    }
}

#[test]
fn a_requested_limit_is_never_dropped_without_permission() {
    let memory = Limits {
        memory_bytes: Some(1 << 30),
        ..Limits::default()
    };
    let at_medium = |demanded: Limits, degradable: &[Capability]| {
        let request = IsolationRequest {
            level: IsolationLevel::Medium,
            limits: memory,
            demanded,
            confinement: None,
            container: None,
            degradable: degradable.to_vec(),
        };
        resolve_isolation(request, &CapabilitySet::default())
    };
    let refused = at_medium(memory, &[]).expect_err("nothing enforces it");
    let names: Vec<Capability> = refused.missing.iter().map(|it| it.ability).collect();
    assert_eq!(names, [Capability::MemoryLimit]);
    let allowed = at_medium(memory, &[Capability::MemoryLimit]).expect("it was allowed");
    let is_told = |it: &ostler_model::MissingCapability| it.ability == Capability::MemoryLimit;
    assert!(allowed.missing.iter().any(is_told));
    // That of the settings is dropped and reported.
    let preset = at_medium(Limits::default(), &[]).expect("nobody asked for it");
    assert!(preset.missing.iter().any(is_told));
}

#[test]
fn a_container_does_without_what_it_was_granted() {
    let container = |grants: bool| ostler_model::ContainerSpec {
        image: "work".to_owned(),
        workspace: "/srv/work".into(),
        network: "none".to_owned(),
        dns: Vec::new(),
        proxy: None,
        read_only_root: true,
        no_new_privileges: !grants,
        user: None,
        cap_add: grants.then(|| "CHOWN".to_owned()).into_iter().collect(),
        volumes: Vec::new(),
        secret_files: false,
        health: None,
        idle_timeout: std::time::Duration::ZERO,
        reuse: true,
        disk: None,
    };
    let at = |container| {
        let request = IsolationRequest {
            level: IsolationLevel::Container,
            container,
            ..IsolationRequest::default()
        };
        let refused = resolve_isolation(request, &CapabilitySet::default());
        let missing = refused.expect_err("nothing is enforced").missing;
        missing.iter().map(|it| it.ability).collect::<Vec<_>>()
    };
    let conditional = [Capability::NoCapabilities, Capability::NoNewPrivileges];
    for ability in conditional {
        assert!(at(None).contains(&ability));
        assert!(at(Some(container(false))).contains(&ability));
        assert!(!at(Some(container(true))).contains(&ability));
    }
    assert!(at(None).contains(&Capability::OwnRoot) && !at(None).contains(&Capability::Landlock));
}
