//! The one function that decides about walls: whatever is asked and whatever a host can do,
//! level high is whole, or lacks only what was allowed to be missing and is said.

use ostler_model::confinement::{Confinement, HostPattern, HostRule, Network};
use ostler_model::{
    Abilities, Ability, Asked, Degraded, IsolationLevel, LimitBackend, Limits, Text, resolve,
};
use proptest::prelude::*;

fn some(of: &'static [Ability]) -> impl Strategy<Value = Vec<Ability>> {
    proptest::sample::subsequence(of, 0..=of.len())
}

fn abilities() -> impl Strategy<Value = Abilities> {
    (some(&Ability::ALL), any::<bool>()).prop_map(|(present, root)| {
        let absent = Ability::ALL.iter().filter(|it| !present.contains(it));
        let missing = absent.map(|it| Degraded {
            ability: *it,
            reason: format!("no {} here", it.as_str()),
        });
        Abilities {
            missing: missing.collect(),
            present,
            backend: LimitBackend::None,
            root,
        }
    })
}

fn network() -> impl Strategy<Value = Network> {
    let host = HostPattern::Name("example.org".to_owned());
    let hosts = vec![HostRule {
        host,
        ports: Vec::new(),
    }];
    prop_oneof![
        Just(Network::None),
        Just(Network::Full),
        Just(Network::AllowList { hosts }),
    ]
}

fn confinement() -> impl Strategy<Value = Confinement> {
    (any::<bool>(), any::<bool>(), network()).prop_map(|(workspace, overlay, network)| {
        Confinement {
            workspace: workspace.then(|| Text::from("/w")),
            overlay: workspace && overlay,
            network,
            ..Confinement::default()
        }
    })
}

fn asked() -> impl Strategy<Value = Asked> {
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
    (level, limits, confinement, some(&Ability::ALL)).prop_map(
        |(level, limits, confinement, degradable)| Asked {
            level,
            limits,
            demanded: Limits::default(),
            confinement,
            degradable,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn level_high_is_whole_or_says_what_it_was_allowed_to_lack(
        asked in asked(), abilities in abilities(),
    ) {
        let high = asked.level == IsolationLevel::High;
        match resolve(asked.clone(), &abilities) {
            Ok(policy) => {
                // Processes can be counted without a cgroup, in a namespace of their own.
                let is_there = |it: &Ability| abilities.has(*it) || (!abilities.root && *it == Ability::PidsLimit);
                prop_assert!(policy.in_force.iter().all(is_there));
                prop_assert!(policy.missing.iter().all(|it| !abilities.has(it.ability)));
                prop_assert_eq!(policy.confinement.is_some(), high);
                if let Some(walls) = policy.confinement {
                    let may = |it: Ability| (it == Ability::OwnCgroup && !abilities.root) || asked.degradable.contains(&it);
                    prop_assert!(policy.missing.iter().all(|it| may(it.ability)));
                    let left_out: Vec<_> = policy.missing.iter().map(|it| it.ability).collect();
                    prop_assert_eq!(walls.without, left_out);
                }
            }
            Err(unmet) => {
                prop_assert!(high);
                prop_assert!(!unmet.missing.is_empty());
                for lack in &unmet.missing {
                    let dispensable = lack.ability != Ability::SpareIds;
                    prop_assert!(!(dispensable && asked.degradable.contains(&lack.ability)));
                    prop_assert!(unmet.to_string().contains(&lack.reason));
                }
            }
        }
    }

    #[test]
    fn what_a_host_can_do_less_never_opens_what_was_closed(
        asked in asked(), abilities in abilities(), lost in proptest::sample::select(&Ability::ALL),
    ) {
        let refused = resolve(asked.clone(), &abilities).is_err();
        let reason = "gone".to_owned();
        let fewer = abilities.lacking(vec![Degraded { ability: lost, reason }]);
        prop_assert!(!fewer.has(lost));
        if refused {
            prop_assert!(resolve(asked, &fewer).is_err());
        }
    }

    #[test]
    fn root_is_never_itself_behind_walls(mut asked in asked(), abilities in abilities()) {
        asked.level = IsolationLevel::High;
        asked.degradable = Ability::ALL.to_vec();
        let mut abilities = abilities.lacking(vec![Degraded {
            ability: Ability::SpareIds,
            reason: "none".to_owned(),
        }]);
        abilities.root = true;
        prop_assert!(resolve(asked, &abilities).is_err());
    }
}

#[test]
fn a_limit_that_is_asked_for_is_never_dropped_unasked() {
    let memory = Limits {
        memory_bytes: Some(1 << 30),
        ..Limits::default()
    };
    let at_medium = |demanded: Limits, degradable: &[Ability]| {
        let asked = Asked {
            level: IsolationLevel::Medium,
            limits: memory,
            demanded,
            confinement: None,
            degradable: degradable.to_vec(),
        };
        resolve(asked, &Abilities::default())
    };
    let refused = at_medium(memory, &[]).expect_err("nothing enforces it");
    let names: Vec<Ability> = refused.missing.iter().map(|it| it.ability).collect();
    assert_eq!(names, [Ability::MemoryLimit]);
    let allowed = at_medium(memory, &[Ability::MemoryLimit]).expect("it was allowed");
    let is_told = |it: &ostler_model::policy::Degraded| it.ability == Ability::MemoryLimit;
    assert!(allowed.missing.iter().any(is_told));
    // That of the settings is dropped and told.
    let preset = at_medium(Limits::default(), &[]).expect("nobody asked for it");
    assert!(preset.missing.iter().any(is_told));
}
