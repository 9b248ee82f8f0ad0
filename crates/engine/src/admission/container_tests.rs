use std::fs;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use ostler_model::{
    ByteString, ContainerHealth, ContainerOptions, ContainerSpec, ErrorCode, IsolationLevel,
    NetworkAccess, SandboxOptions, VolumeMount,
};
use tempfile::TempDir;

use super::container::{inner_cwd, resolve};
use crate::request::{ClientKind, StartRequest};
use crate::settings::{AllowedVolume, Settings};

struct Ground {
    root: TempDir,
}

impl Ground {
    /// Creates `home/project/src`, `state/executions`, `data/sub`, `shared` and a socket in `data`.
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        for path in ["home/project/src", "state/executions", "data/sub", "shared"] {
            fs::create_dir_all(root.path().join(path)).expect("made");
        }
        let _bound = UnixListener::bind(root.path().join("data/socket")).expect("bound");
        Self { root }
    }

    fn path(&self, below: &str) -> ByteString {
        let root = self.root.path().canonicalize().expect("it is there");
        ByteString::from(root.join(below))
    }

    /// Settings with an image, a home, and the volumes `data` (writable) and `shared`.
    fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.path("state").as_path());
        settings.base_env = vec![("HOME".into(), self.path("home"))];
        settings.container.defaults.image = Some("work".to_owned());
        settings.container.volumes = vec![
            AllowedVolume {
                path: self.path("data"),
                write: true,
            },
            AllowedVolume {
                path: self.path("shared"),
                write: false,
            },
        ];
        settings
    }

    fn request(&self, cwd: &str) -> StartRequest {
        let mut request = StartRequest::argv(["true"], self.path(cwd));
        request.options.level = Some(IsolationLevel::Container);
        request
    }

    fn volume(&self, host: &str, container: &str) -> VolumeMount {
        VolumeMount {
            host: self.path(host),
            container: ByteString::from(container),
            write: false,
        }
    }
}

fn resolved(settings: &Settings, request: &StartRequest) -> ContainerSpec {
    resolve(settings, request)
        .expect("it is allowed")
        .expect("a container")
}

fn problem(settings: &Settings, request: &StartRequest) -> String {
    let error = resolve(settings, request).expect_err("it is refused");
    assert_eq!(error.code(), ErrorCode::Value, "{error}");
    error.to_string()
}

/// What is wrong with options in a project, under default settings changed by `change`.
fn problem_with(change: impl FnOnce(&mut Settings), options: ContainerOptions) -> String {
    let ground = Ground::new();
    let mut settings = ground.settings();
    change(&mut settings);
    let mut request = ground.request("home/project");
    *request.options.container = options;
    problem(&settings, &request)
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[test]
fn the_defaults_are_those_of_a_tight_container() {
    let ground = Ground::new();
    let spec = resolved(&ground.settings(), &ground.request("home/project"));
    let expected = ContainerSpec {
        image: "work".to_owned(),
        workspace: ground.path("home/project"),
        network: "bridge".to_owned(),
        dns: Vec::new(),
        proxy: None,
        read_only_root: true,
        no_new_privileges: true,
        user: None,
        cap_add: Vec::new(),
        volumes: Vec::new(),
        secret_files: false,
        health: None,
        idle_timeout: Duration::from_secs(1_800),
        reuse: true,
        disk: None,
    };
    assert_eq!(spec, expected);
}

#[test]
fn other_levels_have_no_container_and_refuse_its_options() {
    let ground = Ground::new();
    let mut request = ground.request("home/project");
    request.options.level = Some(IsolationLevel::Medium);
    assert_eq!(resolve(&ground.settings(), &request).expect("plain"), None);
    request.options.container.image = text("other");
    assert_eq!(
        problem(&ground.settings(), &request),
        "request for 'container': its options hold at isolation level container only, not at medium"
    );
    let mut request = ground.request("home/project");
    request.options.sandbox = SandboxOptions {
        overlay: true,
        ..SandboxOptions::default()
    };
    let refused = problem(&ground.settings(), &request);
    assert!(refused.contains("not at container"), "{refused}");
}

#[test]
fn an_image_is_needed_and_may_be_limited() {
    let without_default = |settings: &mut Settings| settings.container.defaults.image = None;
    let refused = problem_with(without_default, ContainerOptions::default());
    assert!(refused.contains("container.image"), "{refused}");
    let listed = |settings: &mut Settings| {
        settings.container.images = vec!["team/*".to_owned(), "base:1".to_owned()];
    };
    let image = |name: &str| ContainerOptions {
        image: text(name),
        ..ContainerOptions::default()
    };
    let refused = problem_with(listed, image("base:2"));
    assert_eq!(
        refused,
        "image 'base:2': the setting container.images permits team/*, base:1"
    );
    let ground = Ground::new();
    let mut settings = ground.settings();
    listed(&mut settings);
    for name in ["team/tool:3", "base:1", "work"] {
        let mut request = ground.request("home/project");
        *request.options.container = image(name);
        assert_eq!(resolved(&settings, &request).image, name);
    }
    for name in ["", "-x", "a b", "a\n"] {
        let refused = problem_with(|_| (), image(name));
        assert!(
            refused.contains("the name or the id of an image"),
            "{refused}"
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn malformed_options_are_refused_by_name() {
    let none = ContainerOptions::default;
    let health = |command: &[&str], retries| ContainerHealth {
        command: command.iter().map(|it| (*it).to_owned()).collect(),
        interval: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        start_period: Duration::ZERO,
        retries,
    };
    let cases = [
        (
            ContainerOptions {
                network: text("host"),
                ..none()
            },
            "network of its own",
        ),
        (
            ContainerOptions {
                network: text("container:x"),
                ..none()
            },
            "network of its own",
        ),
        (
            ContainerOptions {
                network: text("-x"),
                ..none()
            },
            "no name of a network",
        ),
        (
            ContainerOptions {
                dns: vec!["dns.example".to_owned()],
                ..none()
            },
            "no IP address",
        ),
        (
            ContainerOptions {
                dns: vec!["192.0.2.1".to_owned(); 4],
                ..none()
            },
            "at most 3",
        ),
        (
            ContainerOptions {
                proxy: text("proxy.example:80"),
                ..none()
            },
            "no URL of a proxy",
        ),
        (
            ContainerOptions {
                proxy: text("http://"),
                ..none()
            },
            "no URL of a proxy",
        ),
        (
            ContainerOptions {
                proxy: text("http://me:pw@p.example"),
                ..none()
            },
            "credentials",
        ),
        (
            ContainerOptions {
                user: text(""),
                ..none()
            },
            "uid:gid",
        ),
        (
            ContainerOptions {
                user: text("a:b:c"),
                ..none()
            },
            "uid:gid",
        ),
        (
            ContainerOptions {
                user: text("99999999999"),
                ..none()
            },
            "uid:gid",
        ),
        (
            ContainerOptions {
                cap_add: vec!["SYS_ADMNI".to_owned()],
                ..none()
            },
            "SYS_ADMIN?",
        ),
        (
            ContainerOptions {
                cap_add: vec!["ALL".to_owned()],
                ..none()
            },
            "no such capability",
        ),
        (
            ContainerOptions {
                health: Some(health(&[], 3)),
                ..none()
            },
            "needs a program",
        ),
        (
            ContainerOptions {
                health: Some(health(&["true"], 0)),
                ..none()
            },
            "from 1 to 100",
        ),
        (
            ContainerOptions {
                stop_grace: Some(Duration::from_secs(90_000)),
                ..none()
            },
            "at most a day",
        ),
    ];
    for (options, expected) in cases {
        let refused = problem_with(|_| (), options);
        assert!(refused.contains(expected), "{refused}: {expected}");
    }
}

#[test]
fn a_request_tightens_and_never_loosens() {
    let none = ContainerOptions::default;
    let cases = [
        (
            ContainerOptions {
                network: text("office"),
                ..none()
            },
            "permits bridge, none",
        ),
        (
            ContainerOptions {
                user: text("root"),
                ..none()
            },
            "container.users",
        ),
        (
            ContainerOptions {
                user: text("1000:00"),
                ..none()
            },
            "container.users",
        ),
        (
            ContainerOptions {
                cap_add: vec!["chown".to_owned()],
                ..none()
            },
            "permits none",
        ),
        (
            ContainerOptions {
                read_only_root: Some(false),
                ..none()
            },
            "allow_writable_root",
        ),
        (
            ContainerOptions {
                no_new_privileges: Some(false),
                ..none()
            },
            "allow_new_privileges",
        ),
    ];
    for (options, expected) in cases {
        let refused = problem_with(|_| (), options);
        assert!(refused.contains(expected), "{refused}: {expected}");
    }
    let ground = Ground::new();
    let mut settings = ground.settings();
    let allowed = &mut settings.container;
    allowed.networks = Some(vec!["office".to_owned()]);
    allowed.users = vec!["root".to_owned()];
    allowed.capabilities = vec!["CAP_CHOWN".to_owned(), "net_raw".to_owned()];
    (allowed.allow_writable_root, allowed.allow_new_privileges) = (true, true);
    let mut request = ground.request("home/project");
    *request.options.container = ContainerOptions {
        network: text("office"),
        user: text("root"),
        cap_add: vec!["cap_net_raw".to_owned(), "CHOWN".to_owned()],
        read_only_root: Some(false),
        no_new_privileges: Some(false),
        ..none()
    };
    let spec = resolved(&settings, &request);
    assert_eq!(
        (spec.network.as_str(), spec.user.as_deref()),
        ("office", Some("root"))
    );
    assert_eq!(spec.cap_add, ["CHOWN", "NET_RAW"]);
    assert!(!spec.read_only_root && !spec.no_new_privileges);
}

#[test]
fn a_default_may_be_asked_for_whatever_the_lists_say() {
    let ground = Ground::new();
    let mut settings = ground.settings();
    settings.container.networks = Some(Vec::new());
    settings.container.defaults = ContainerOptions {
        image: text("work"),
        network: text("office"),
        user: text("0"),
        read_only_root: Some(false),
        ..ContainerOptions::default()
    };
    let mut request = ground.request("home/project");
    *request.options.container = settings.container.defaults.clone();
    let spec = resolved(&settings, &request);
    assert_eq!(
        (spec.network.as_str(), spec.read_only_root),
        ("office", false)
    );
}

#[test]
fn a_container_is_no_way_around_the_network_of_level_high() {
    let ground = Ground::new();
    let mut settings = ground.settings();
    settings.isolation.minimum = IsolationLevel::High;
    let request = ground.request("home/project");
    assert_eq!(resolved(&settings, &request).network, "none");
    let mut bridged = request.clone();
    bridged.options.container.network = text("bridge");
    assert!(problem(&settings, &bridged).contains("permits none"));
    settings.isolation.network = NetworkAccess::Full;
    assert_eq!(resolved(&settings, &bridged).network, "bridge");
}

#[test]
fn volumes_are_below_what_the_settings_permit_and_hold_no_socket() {
    let ground = Ground::new();
    let settings = ground.settings();
    let volumes = |volumes: Vec<VolumeMount>| {
        let mut request = ground.request("home/project");
        request.options.container.volumes = volumes;
        request
    };
    let accepted = volumes(vec![
        VolumeMount {
            write: true,
            ..ground.volume("data/sub", "/cache/")
        },
        ground.volume("shared", "/workspace/shared"),
    ]);
    let spec = resolved(&settings, &accepted);
    assert_eq!(spec.volumes[0].container, ByteString::from("/cache"));
    let inner = |container: &str| vec![ground.volume("data/sub", container)];
    let host = |host: &str| {
        vec![VolumeMount {
            host: ByteString::from(host),
            container: "/x".into(),
            write: false,
        }]
    };
    let cases = [
        (
            vec![ground.volume("home/project", "/x")],
            "in none of the directories",
        ),
        (
            vec![VolumeMount {
                write: true,
                ..ground.volume("shared", "/x")
            }],
            "read-only",
        ),
        (
            vec![ground.volume("data/socket", "/x")],
            "a socket of the host",
        ),
        (
            vec![ground.volume("state/executions", "/x")],
            "belongs to Ostler",
        ),
        (
            vec![ground.volume("", "/x")],
            "contains what belongs to Ostler",
        ),
        (vec![ground.volume("data/none", "/x")], "cannot be found"),
        (host("data"), "not absolute"),
        (host("/"), "the host's root"),
        (host("/proc/self"), "nothing of /proc"),
        (host("/dev"), "nothing of /dev"),
        (inner("x"), "not absolute"),
        (inner("/a/../b"), "not absolute"),
        (inner("/"), "something else"),
        (inner("/proc"), "something else"),
        (inner("/run"), "something else"),
        (inner("/run/ostler/x"), "something else"),
        (inner("/run/secrets"), "something else"),
        (inner("/workspace"), "something else"),
        (inner("/tmp/"), "something else"),
        (
            vec![
                ground.volume("data/sub", "/x"),
                ground.volume("shared", "/x/"),
            ],
            "two volumes",
        ),
    ];
    for (list, expected) in cases {
        let refused = problem(&settings, &volumes(list));
        assert!(refused.contains(expected), "{refused}: {expected}");
    }
}

#[test]
fn no_directory_with_the_socket_of_an_engine_is_mounted() {
    let ground = Ground::new();
    let mut settings = ground.settings();
    settings.container.socket = Some(ground.path("data/socket").as_path().to_owned());
    let mut request = ground.request("home/project");
    request.options.container.volumes = vec![ground.volume("data", "/x")];
    let refused = problem(&settings, &request);
    assert!(
        refused.contains("the socket of a container engine"),
        "{refused}"
    );
    let mut request = ground.request("data/sub");
    request.options.container.workspace = Some(ground.path("data"));
    let refused = problem(&settings, &request);
    assert!(
        refused.contains("the socket of a container engine"),
        "{refused}"
    );
}

#[test]
fn a_link_is_judged_by_what_it_points_at() {
    let ground = Ground::new();
    let link = ground.path("data/link");
    std::os::unix::fs::symlink(ground.path("home/project").as_path(), link.as_path())
        .expect("linked");
    let mut request = ground.request("home/project");
    request.options.container.volumes = vec![ground.volume("data/link", "/x")];
    let refused = problem(&ground.settings(), &request);
    assert!(refused.contains("in none of the directories"), "{refused}");
}

#[test]
fn the_workspace_holds_the_working_directory_and_nothing_of_ours() {
    let ground = Ground::new();
    let settings = ground.settings();
    let mut request = ground.request("home/project/src");
    request.options.container.workspace = Some(ground.path("home/project"));
    let spec = resolved(&settings, &request);
    assert_eq!(spec.workspace, ground.path("home/project"));
    assert_eq!(
        inner_cwd(&request.cwd, &spec),
        ByteString::from("/workspace/src")
    );
    assert_eq!(
        inner_cwd(&spec.workspace, &spec),
        ByteString::from("/workspace")
    );
    request.options.container.workspace = Some(ground.path("data"));
    assert!(problem(&settings, &request).contains("not below the workspace"));
    for (cwd, expected) in [
        ("", "contains what belongs to Ostler"),
        ("home", "holds the home directory"),
        ("state/executions", "belongs to Ostler"),
        ("missing", "no such directory"),
    ] {
        let refused = problem(&settings, &ground.request(cwd));
        assert!(refused.contains(expected), "{refused}: {expected}");
    }
    let mut request = StartRequest::argv(["true"], "/var/tmp");
    request.options.level = Some(IsolationLevel::Container);
    assert!(problem(&settings, &request).contains("shared by everything"));
    let mut hiding = settings.clone();
    hiding.isolation.hide = vec![ground.path("home/project/src")];
    let refused = problem(&hiding, &ground.request("home/project"));
    assert!(refused.contains("what the settings hide"), "{refused}");
}

#[test]
fn root_lets_a_container_write_where_another_user_does() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let ground = Ground::new();
    let project = ground.path("home/project");
    std::os::unix::fs::chown(project.as_path(), Some(1_000), Some(1_000)).expect("owned");
    let spec = resolved(&ground.settings(), &ground.request("home/project"));
    assert_eq!(spec.workspace, project);
    let mut high = ground.request("home/project");
    high.options.level = Some(IsolationLevel::High);
    assert!(super::sandbox::resolve(&ground.settings(), &high).is_err());
}

#[test]
fn the_clients_environment_cannot_be_asked_for() {
    let ground = Ground::new();
    let mut request = ground.request("home/project");
    request.options.inherit_env = Some(true);
    assert!(problem(&ground.settings(), &request).contains("variables of its request only"));
    request.client_kind = ClientKind::Cli;
    assert!(
        resolve(&ground.settings(), &request).is_ok(),
        "it is the default there"
    );
}
