use proptest::prelude::*;

use super::*;

const IDLE: Duration = Duration::from_secs(60);

fn name() -> ContainerName {
    ContainerName::unique().expect("random")
}

fn traits(key: &str) -> ContainerTraits {
    ContainerTraits {
        key: PoolKey::from_label(key),
        idle_timeout: Some(IDLE),
    }
}

fn created(pool: &mut PoolState, key: &str, now: Instant) -> ContainerName {
    let admission = pool.admit(traits(key), name(), now);
    let ContainerChoice::Create(name) = admission else {
        panic!("not created: {admission:?}");
    };
    name
}

#[test]
fn two_starts_at_once_make_one_container() {
    let (mut pool, now) = (PoolState::default(), Instant::now());
    let first = created(&mut pool, "a", now);
    assert_eq!(
        pool.admit(traits("a"), name(), now),
        ContainerChoice::Wait(first.clone())
    );
    created(&mut pool, "b", now);
    pool.started(&first);
    assert_eq!(
        pool.admit(traits("a"), name(), now),
        ContainerChoice::Serve(first)
    );
    assert_eq!(pool.len(), 2);
}

#[test]
fn an_idle_container_is_removed_when_its_time_is_over() {
    let (mut pool, now) = (PoolState::default(), Instant::now());
    let only = created(&mut pool, "a", now);
    pool.started(&only);
    assert_eq!(pool.next_due(), None, "it is in use");
    pool.release(&only, now);
    assert_eq!(pool.next_due(), Some(now + IDLE));
    assert_eq!(pool.take_due(now + IDLE / 2), []);
    assert_eq!(pool.take_due(now + IDLE), std::slice::from_ref(&only));
    assert_eq!((pool.take_due(now + IDLE), pool.next_due()), (vec![], None));
    pool.not_removed(&only, now + IDLE);
    assert_eq!(pool.next_due(), Some(now + IDLE + REMOVE_RETRY));
    pool.removed(&only);
    assert_eq!(pool.len(), 0);
}

#[test]
fn a_container_for_one_start_is_not_shared() {
    let (mut pool, now) = (PoolState::default(), Instant::now());
    let single = ContainerTraits {
        idle_timeout: None,
        ..traits("a")
    };
    let ContainerChoice::Create(first) = pool.admit(single.clone(), name(), now) else {
        panic!("not created");
    };
    pool.started(&first);
    for traits in [single, traits("a")] {
        let next = pool.admit(traits, name(), now);
        assert!(matches!(next, ContainerChoice::Create(_)), "{next:?}");
    }
    pool.release(&first, now);
    assert_eq!(pool.take_due(now), [first]);
}

#[test]
fn an_ill_container_ends_with_its_last_command() {
    let (mut pool, now) = (PoolState::default(), Instant::now());
    let ill = created(&mut pool, "a", now);
    pool.started(&ill);
    pool.retire(&ill, now);
    assert_eq!(pool.take_due(now), [], "a command runs in it");
    created(&mut pool, "a", now);
    pool.release(&ill, now);
    assert_eq!(pool.take_due(now), [ill]);
}

#[test]
fn the_number_of_containers_is_limited_and_idle_ones_make_room() {
    let (mut pool, now) = (PoolState::default(), Instant::now());
    let names: Vec<_> = (0..CONTAINERS_MAX)
        .map(|number| created(&mut pool, &number.to_string(), now))
        .collect();
    assert_eq!(
        pool.admit(traits("more"), name(), now),
        ContainerChoice::Full
    );
    for (number, name) in names.iter().take(2).enumerate() {
        pool.started(name);
        let later = Duration::from_secs(u64::from(number == 0));
        pool.release(name, now + later);
    }
    created(&mut pool, "more", now);
    assert_eq!(pool.take_due(now), [names[1].clone()], "idle for longest");
}

#[test]
fn the_end_of_the_daemon_removes_what_is_not_in_use() {
    let (mut pool, now) = (PoolState::default(), Instant::now());
    let used = created(&mut pool, "used", now);
    let idle = created(&mut pool, "idle", now);
    pool.started(&used);
    pool.started(&idle);
    pool.release(&idle, now);
    assert_eq!(pool.take_unused(), [idle]);
}

#[derive(Debug, Clone)]
enum Step {
    Admit { key: u8, shared: bool },
    Started(usize),
    Failed(usize),
    Retire(usize),
    Release(usize),
    Remove { succeeds: bool },
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = 0_usize..8;
    let step = prop_oneof![
        4 => (0_u8..3, any::<bool>()).prop_map(|(key, shared)| Step::Admit { key, shared }),
        3 => index.clone().prop_map(Step::Started),
        1 => index.clone().prop_map(Step::Failed),
        1 => index.clone().prop_map(Step::Retire),
        4 => index.prop_map(Step::Release),
        2 => any::<bool>().prop_map(|succeeds| Step::Remove { succeeds }),
        2 => (0_u64..100).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    /// Whatever happens in whatever order: a container with running commands is not removed, at
    /// most one is made for a key at a time, and when all commands have ended all containers go.
    #[test]
    fn no_container_in_use_is_removed_and_none_stays_forever(steps in steps()) {
        let (mut pool, mut now) = (PoolState::default(), Instant::now());
        // One entry for each start that has its container.
        let mut uses: Vec<ContainerName> = Vec::new();
        let mut failed: Vec<ContainerName> = Vec::new();
        for step in steps {
            match step {
                Step::Admit { key, shared } => {
                    let traits = ContainerTraits {
                        idle_timeout: shared.then_some(IDLE),
                        ..traits(&key.to_string())
                    };
                    let fresh = name();
                    match pool.admit(traits, fresh.clone(), now) {
                        ContainerChoice::Serve(it) | ContainerChoice::Wait(it) => {
                            prop_assert!(shared && !failed.contains(&it));
                            uses.push(it);
                        }
                        ContainerChoice::Create(it) => {
                            prop_assert_eq!(&it, &fresh);
                            uses.push(it);
                        }
                        ContainerChoice::Full => prop_assert!(pool.len() >= CONTAINERS_MAX),
                    }
                }
                Step::Started(index) => { uses.get(index).inspect(|it| pool.started(it)); }
                Step::Failed(index) => {
                    if let Some(it) = uses.get(index).cloned() {
                        pool.failed(&it, now);
                        failed.push(it.clone());
                        uses.retain(|other| *other != it);
                    }
                }
                Step::Retire(index) => { uses.get(index).inspect(|it| pool.retire(it, now)); }
                Step::Release(index) if index < uses.len() => {
                    let it = uses.swap_remove(index);
                    pool.started(&it);
                    pool.release(&it, now);
                }
                Step::Release(_) => {}
                Step::Remove { succeeds } => {
                    for it in pool.take_due(now) {
                        prop_assert!(!uses.contains(&it), "{} is in use", it);
                        if succeeds { pool.removed(&it) } else { pool.not_removed(&it, now) }
                    }
                }
                Step::Pass(seconds) => now += Duration::from_secs(seconds),
            }
        }
        for it in uses {
            pool.started(&it);
            pool.release(&it, now);
        }
        while let Some(due) = pool.next_due() {
            for it in pool.take_due(due) {
                pool.removed(&it);
            }
        }
        prop_assert_eq!(pool.len(), 0);
    }
}
