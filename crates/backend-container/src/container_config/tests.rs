use std::path::PathBuf;

use ostler_model::{ByteString, VolumeMount};

use super::*;
use crate::fixtures;

fn body(spec: &ContainerSpec, limits: &Limits) -> Box<ContainerCreateBody> {
    let plan = ContainerPlan {
        spec,
        limits,
        image_user: Some("1000:1001"),
        init: Path::new("/state/container/init-0"),
        socket_dir: Path::new("/state/container/ostler-1"),
        masked: &[PathBuf::from("/workspace/state")],
        labels: HashMap::from([("a".to_owned(), "b".to_owned())]),
        has_tmpfs_owners: true,
        limits_layer: true,
    };
    create_body(plan).expect("valid")
}

#[test]
fn a_container_has_no_more_than_was_asked_for() {
    let spec = fixtures::launch().spec;
    let body = body(&spec, &Limits::default());
    let host = body.host_config.expect("set");
    assert_eq!(body.entrypoint, Some(vec![INIT_TARGET.to_owned()]));
    assert_eq!(body.cmd, Some(Vec::new()));
    assert_eq!(body.env, Some(Vec::new()));
    assert_eq!(host.privileged, Some(false));
    assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
    assert_eq!(host.cap_add, Some(Vec::new()));
    assert_eq!(
        host.security_opt,
        Some(vec!["no-new-privileges".to_owned()])
    );
    assert_eq!(host.readonly_rootfs, Some(true));
    assert_eq!(
        (host.memory, host.storage_opt, host.pids_limit),
        (None, None, None)
    );
    assert_eq!((host.init, host.oom_score_adj), (Some(false), None));
    assert_eq!(host.network_mode.as_deref(), Some("none"));
    let targets: Vec<_> = host.mounts.iter().flatten().collect();
    let targets = targets
        .iter()
        .map(|it| (it.target.as_deref(), it.read_only));
    let expected = [
        (Some("/workspace"), Some(false)),
        (Some(INIT_TARGET), Some(true)),
        (Some(SOCKET_DIR), Some(false)),
    ];
    assert_eq!(targets.collect::<Vec<_>>(), expected);
}

#[test]
fn limits_are_in_the_units_of_the_engine() {
    let limits = Limits {
        pids: Some(20),
        memory_bytes: Some(64 << 20),
        cpu_millis: Some(500),
        open_files: Some(256),
        file_bytes: Some(4096),
        disk_bytes: Some(1 << 30),
    };
    let host = body(&fixtures::launch().spec, &limits)
        .host_config
        .expect("set");
    assert_eq!(
        (host.memory, host.memory_swap),
        (Some(64 << 20), Some(64 << 20))
    );
    assert_eq!(
        (host.nano_cpus, host.pids_limit),
        (Some(500_000_000), Some(20))
    );
    let size = host.storage_opt.expect("set").remove("size");
    assert_eq!(size.as_deref(), Some("1073741824"));
    assert_eq!(host.ulimits, None, "the runner's");
    let tmp = host.tmpfs.expect("set").remove("/tmp").expect("set");
    assert!(tmp.contains("size=33554432"), "{tmp}");
}

#[test]
fn options_arrive_as_they_were_requested() {
    let mut spec = fixtures::launch().spec;
    spec.proxy = Some("http://192.0.2.1:3128".to_owned());
    spec.dns = vec!["192.0.2.2".to_owned()];
    spec.cap_add = vec!["NET_RAW".to_owned()];
    spec.user = Some("builder:builder".to_owned());
    spec.no_new_privileges = false;
    spec.volumes = vec![VolumeMount {
        host: ByteString::from("/srv/a:b"),
        container: ByteString::from("/data"),
        write: false,
    }];
    spec.health = serde_json::from_str(r#"{"command": ["test", "-e", "/x"]}"#).ok();
    let body = body(&spec, &Limits::default());
    let host = body.host_config.expect("set");
    let env = body.env.expect("set");
    for name in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "no_proxy",
        "NO_PROXY",
    ] {
        assert!(
            env.iter().any(|it| it.starts_with(&format!("{name}="))),
            "{name}"
        );
    }
    assert_eq!(host.dns, Some(spec.dns.clone()));
    assert_eq!(host.cap_add, Some(spec.cap_add.clone()));
    assert_eq!(host.security_opt, None);
    let volume = host.mounts.expect("set").pop().expect("the volume");
    assert_eq!(
        (volume.source.as_deref(), volume.read_only),
        (Some("/srv/a:b"), Some(true))
    );
    let health = body.healthcheck.expect("set");
    assert_eq!(health.test.expect("set"), ["CMD", "test", "-e", "/x"]);
    assert_eq!(
        (health.interval, health.retries),
        (Some(30_000_000_000), Some(3))
    );
    let tmpfs = host.tmpfs.expect("set");
    assert!(
        tmpfs[CONTAINER_SECRETS].ends_with("mode=1777"),
        "a name has no id here"
    );
    assert!(tmpfs["/workspace/state"].contains("mode=0"), "masked");
}

#[test]
fn secrets_belong_to_the_user_where_its_id_is_known() {
    for (user, expected) in [
        ("", "mode=0700,uid=0,gid=0"),
        ("root", "mode=0700,uid=0,gid=0"),
        ("1000", "mode=0700,uid=1000,gid=0"),
        ("1000:1001", "mode=0700,uid=1000,gid=1001"),
        ("builder", "mode=1777"),
        ("1000:builders", "mode=1777"),
    ] {
        assert_eq!(secrets_owner(user), expected, "{user}");
    }
}
