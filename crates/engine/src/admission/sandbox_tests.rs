use std::fs;
use std::path::Path;

use ostler_model::{
    ByteString, Capability, HostPattern, HostRule, IsolationLevel, NetworkAccess, PortForward,
};
use tempfile::TempDir;

use super::isolation_level::effective_level;
use super::sandbox::{effective_cwd, resolve};
use crate::error::Error;
use crate::request::StartRequest;
use crate::settings::Settings;

struct Ground {
    root: TempDir,
}

impl Ground {
    /// Creates `home` with a toolchain and a key, `home/project`, `state`, and `venv` with `bin`
    /// and a marker file.
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        for path in [
            "home/project",
            "home/.ssh",
            "home/.cargo/bin",
            "state/executions",
            "venv/bin",
        ] {
            fs::create_dir_all(root.path().join(path)).expect("made");
        }
        fs::write(root.path().join("venv/pyvenv.cfg"), "").expect("written");
        Self { root }
    }

    fn path(&self, below: &str) -> ByteString {
        let root = self.root.path().canonicalize().expect("it is there");
        ByteString::from(root.join(below))
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.path("state").as_path());
        let path = format!("/usr/bin:{}:relative", self.path("venv/bin"));
        settings.base_env = vec![
            ("PATH".into(), path.into()),
            ("HOME".into(), self.path("home")),
        ];
        settings
    }

    fn high(&self, cwd: &str) -> StartRequest {
        let mut request = StartRequest::argv(["true"], self.path(cwd));
        request.options.level = Some(IsolationLevel::High);
        request
    }
}

fn problem(settings: &Settings, request: &StartRequest) -> String {
    resolve(settings, request)
        .expect_err("it is refused")
        .to_string()
}

#[test]
fn the_working_directory_is_the_workspace_and_the_home_is_hidden() {
    let ground = Ground::new();
    let made = resolve(&ground.settings(), &ground.high("home/project"));
    let made = made.expect("it can be").expect("at level high");
    assert_eq!(made.workspace, Some(ground.path("home/project")));
    assert_eq!(made.home, Some(ground.path("home")));
    assert_eq!(
        made.read,
        [ground.path("home/.cargo/bin"), ground.path("venv")]
    );
    assert_eq!(made.hide, [ground.path("state")]);
    assert_eq!(made.network, NetworkAccess::None);
    assert!(made.protect.contains(&ByteString::from(".git/hooks")));
}

#[test]
fn lower_levels_have_no_sandbox_and_accept_no_option_silently() {
    let ground = Ground::new();
    let mut request = ground.high("home/project");
    request.options.level = None;
    assert_eq!(
        resolve(&ground.settings(), &request).expect("it can be"),
        None
    );
    request.options.sandbox.overlay = true;
    let actual = problem(&ground.settings(), &request);
    assert!(
        actual.contains("only at isolation level high, not at medium"),
        "{actual}"
    );
}

#[test]
fn what_belongs_to_others_is_no_workspace() {
    let ground = Ground::new();
    let settings = ground.settings();
    for (cwd, why) in [
        ("home", "holds the home directory"),
        ("", "holds the home directory"),
        (
            "state/executions",
            "it belongs to Ostler, or the settings hide it",
        ),
    ] {
        let actual = problem(&settings, &ground.high(cwd));
        assert!(actual.contains(why), "{cwd}: {actual}");
    }
    for (cwd, why) in [
        ("/", "holds the home directory"),
        ("/usr", "system"),
        ("/usr/bin", "system"),
        ("/etc/ssl", "system"),
        ("/proc", "file system of the kernel"),
        ("/mnt", "shared"),
    ] {
        let mut request = ground.high("home/project");
        request.cwd = ByteString::from(cwd);
        let actual = problem(&settings, &request);
        assert!(actual.contains(why), "{cwd}: {actual}");
    }
}

#[test]
fn a_private_directory_is_worked_in_without_a_workspace() {
    let ground = Ground::new();
    let mut request = ground.high("home/project");
    request.cwd = ByteString::from("/tmp");
    let made = resolve(&ground.settings(), &request).expect("it can be");
    assert_eq!(made.expect("at level high").workspace, None);
    request.options.sandbox.overlay = true;
    let actual = problem(&ground.settings(), &request);
    assert!(actual.contains("private"), "{actual}");

    // Named as the workspace, it would have to be the host's.
    request.options.sandbox.overlay = false;
    request.options.sandbox.workspace = Some(ByteString::from("/tmp"));
    let actual = problem(&ground.settings(), &request);
    assert!(
        actual.contains("workspace") && actual.contains("private"),
        "{actual}"
    );
}

#[test]
fn the_processes_of_the_host_are_not_shown() {
    let ground = Ground::new();
    for (path, why) in [
        ("/", "holds everything"),
        ("/proc", "host's processes"),
        ("/proc/self/status", "host's processes"),
        ("/proc/sys/kernel", "host's processes"),
    ] {
        let mut request = ground.high("home/project");
        request.options.sandbox.read = vec![ByteString::from(path)];
        let actual = problem(&ground.settings(), &request);
        assert!(actual.contains(why), "{path}: {actual}");
    }
}

#[test]
fn a_home_of_the_kernel_is_none() {
    let ground = Ground::new();
    let mut request = ground.high("home/project");
    request.options.set_env = vec![("HOME".into(), "/proc/self".into())];
    let made = resolve(&ground.settings(), &request).expect("it can be");
    assert_eq!(made.expect("at level high").home, None);
}

#[test]
fn links_are_resolved_before_anything_is_decided() {
    let ground = Ground::new();
    let link = ground.root.path().join("link");
    std::os::unix::fs::symlink(ground.path("home").as_path(), &link).expect("linked");
    let actual = problem(&ground.settings(), &ground.high("link"));
    assert!(actual.contains("holds the home directory"), "{actual}");
    let through = ground.high("link/project");
    let made = resolve(&ground.settings(), &through).expect("it can be");
    let made = made.expect("at level high");
    assert_eq!(made.workspace, Some(ground.path("home/project")));
    assert_eq!(
        effective_cwd(&through.cwd, Some(&made)),
        ground.path("home/project")
    );
}

#[test]
fn the_working_directory_must_be_below_a_workspace_that_is_named() {
    let ground = Ground::new();
    let mut request = ground.high("home/project");
    request.options.sandbox.workspace = Some(ground.path("venv"));
    let actual = problem(&ground.settings(), &request);
    assert!(actual.contains("not below the workspace"), "{actual}");
    fs::create_dir(ground.path("home/project/src").as_path()).expect("made");
    let mut request = ground.high("home/project/src");
    request.options.sandbox.workspace = Some(ground.path("home/project"));
    let made = resolve(&ground.settings(), &request).expect("it can be");
    assert_eq!(
        made.expect("high").workspace,
        Some(ground.path("home/project"))
    );
}

#[test]
fn paths_of_a_request_are_absolute_and_there() {
    let ground = Ground::new();
    for (path, why) in [
        ("relative", "not absolute"),
        ("/no/such/path", "cannot be found"),
    ] {
        let mut request = ground.high("home/project");
        request.options.sandbox.read = vec![ByteString::from(path)];
        let actual = problem(&ground.settings(), &request);
        assert!(actual.contains(why), "{path}: {actual}");
    }
    let mut request = ground.high("home/project");
    request.options.sandbox.write = vec![ground.path("home")];
    assert!(problem(&ground.settings(), &request).contains("holds the home directory"));
}

#[test]
fn a_minimum_of_high_holds_requests_tight() {
    let ground = Ground::new();
    let mut settings = ground.settings();
    settings.isolation.minimum = IsolationLevel::High;
    let mut request = ground.high("home/project");
    request.options.level = None;
    let held = effective_level(&settings.isolation, &request).expect("the minimum");
    assert_eq!(held, IsolationLevel::High);
    request.options.level = Some(IsolationLevel::Medium);
    assert!(problem(&settings, &request).contains("no level below 'high'"));
    let loosened: [fn(&mut StartRequest); 5] = [
        |request| {
            request.options.sandbox.forwards = vec![PortForward {
                host: 8_080,
                inside: 80,
            }];
        },
        |request| request.options.sandbox.network = Some(NetworkAccess::Full),
        |request| request.options.sandbox.read = vec![ByteString::from("/usr")],
        |request| request.options.sandbox.allow_degraded = vec![Capability::Landlock],
        |request| {
            let host = HostPattern::Name("example.org".to_owned());
            let hosts = vec![HostRule {
                host,
                ports: Vec::new(),
            }];
            request.options.sandbox.network = Some(NetworkAccess::AllowList { hosts });
        },
    ];
    for loosen in loosened {
        let mut request = ground.high("home/project");
        loosen(&mut request);
        let error = resolve(&settings, &request).expect_err("it is refused");
        assert!(matches!(error, Error::InvalidSandbox { .. }), "{error}");
        assert!(
            error.to_string().contains("hold requests to level high"),
            "{error}"
        );
    }
}

#[test]
fn what_would_show_hidden_things_is_left_out_of_the_search_path() {
    let ground = Ground::new();
    let mut settings = ground.settings();
    fs::create_dir(ground.path("lib").as_path()).expect("made");
    fs::create_dir(ground.path("bin").as_path()).expect("made");
    settings.base_env[0].1 = ground.path("bin");
    let made = resolve(&settings, &ground.high("home/project")).expect("it can be");
    let read = made.expect("at level high").read;
    assert!(read.contains(&ground.path("bin")), "{read:?}");
    let root = ground.path("");
    assert!(
        !read
            .iter()
            .any(|it| Path::new(it.as_path()) == root.as_path()),
        "{read:?}"
    );
}

#[test]
fn with_a_minimum_of_high_the_environment_of_a_request_shows_nothing() {
    let ground = Ground::new();
    let mut settings = ground.settings();
    settings.isolation.minimum = IsolationLevel::High;
    let mut request = ground.high("home/project");
    fs::create_dir_all(ground.path("other/bin").as_path()).expect("made");
    request.options.set_env = vec![
        ("HOME".into(), ground.path("other")),
        ("PATH".into(), ground.path("other/bin")),
    ];
    let plain = resolve(&settings, &ground.high("home/project")).expect("it can be");
    let made = resolve(&settings, &request).expect("it can be");
    assert_eq!(made, plain);
    request.options.set_env.clear();
    request.base_env = vec![
        ("HOME".into(), ground.path("other")),
        ("PATH".into(), ground.path("other/bin")),
    ];
    assert_eq!(resolve(&settings, &request).expect("it can be"), plain);
}

#[test]
fn a_forward_that_the_settings_list_passes() {
    let ground = Ground::new();
    let mut settings = ground.settings();
    settings.isolation.minimum = IsolationLevel::High;
    let forward = PortForward {
        host: 8_080,
        inside: 80,
    };
    settings.isolation.forwards = vec![forward];
    let mut request = ground.high("home/project");
    request.options.sandbox.forwards = vec![forward];
    let made = resolve(&settings, &request).expect("it can be");
    assert_eq!(made.expect("at level high").forwards, [forward]);
}

#[test]
fn another_home_leaves_the_own_one_hidden() {
    let ground = Ground::new();
    let settings = ground.settings();
    fs::create_dir_all(ground.path("other").as_path()).expect("made");
    let mut request = ground.high("venv");
    let keys = ground.path("home/.ssh");
    request.options.set_env = vec![
        ("HOME".into(), ground.path("other")),
        ("PATH".into(), keys.clone()),
    ];
    let made = resolve(&settings, &request).expect("it can be");
    let made = made.expect("at level high");
    assert!(made.hide.contains(&ground.path("home")), "{:?}", made.hide);
    assert!(!made.read.contains(&keys), "{:?}", made.read);
}

#[test]
fn credentials_and_programs_of_the_home_are_no_workspace() {
    let ground = Ground::new();
    let actual = problem(&ground.settings(), &ground.high("home/.ssh"));
    assert!(actual.contains("settings or credentials"), "{actual}");
    fs::create_dir_all(ground.path("home/bin").as_path()).expect("made");
    let actual = problem(&ground.settings(), &ground.high("home/bin"));
    assert!(actual.contains("programs of the user"), "{actual}");
}

#[test]
fn listed_workspaces_are_the_only_ones() {
    let ground = Ground::new();
    let mut settings = ground.settings();
    settings.isolation.workspaces = vec![ground.path("home/project")];
    resolve(&settings, &ground.high("home/project")).expect("it is listed");
    let actual = problem(&settings, &ground.high("venv"));
    assert!(actual.contains("isolation.workspaces"), "{actual}");
}

/// Writes a file below the home directory.
fn put(ground: &Ground, below: &str) {
    let path = ground.path("home").as_path().join(below);
    fs::create_dir_all(path.parent().expect("below")).expect("made");
    fs::write(path, "x").expect("written");
}

#[test]
fn credentials_stay_hidden_under_a_directory_that_is_made_visible() {
    let ground = Ground::new();
    let mut settings = ground.settings();
    settings.isolation.home_visible = [".local", ".ssh", ".aws/sso"]
        .map(ByteString::from)
        .to_vec();
    for file in [
        ".local/share/keyrings/x",
        ".local/share/icons/x",
        ".ssh/id",
        ".aws/sso/x",
    ] {
        put(&ground, file);
    }
    let made = resolve(&settings, &ground.high("home/project"));
    let made = made.expect("it can be").expect("at level high");
    assert!(made.read.contains(&ground.path("home/.local")));
    assert!(!made.read.contains(&ground.path("home/.ssh")));
    assert!(!made.read.contains(&ground.path("home/.aws/sso")));
    let store = ground.path("home/.local/share/keyrings");
    assert_eq!(made.hide, [ground.path("state"), store]);
}

#[test]
fn credentials_stay_hidden_in_what_the_search_path_shows_and_what_links_lead_to() {
    let ground = Ground::new();
    let mut settings = ground.settings();
    for file in [
        ".local/bin/x",
        ".local/lib/x",
        ".local/share/keyrings/x",
        "dot/aws/x",
    ] {
        put(&ground, file);
    }
    let link = ground.path("home/.aws");
    std::os::unix::fs::symlink(ground.path("home/dot/aws").as_path(), link.as_path())
        .expect("linked");
    let path = format!("{}", ground.path("home/.local/bin"));
    settings.base_env[0].1 = path.into();
    settings.isolation.home_visible = vec![ByteString::from("dot")];
    let made = resolve(&settings, &ground.high("home/project"));
    let made = made.expect("it can be").expect("at level high");
    assert!(made.read.contains(&ground.path("home/.local")), "{made:?}");
    for store in ["home/.local/share/keyrings", "home/.aws"] {
        assert!(made.hide.contains(&ground.path(store)), "{store} {made:?}");
    }
}

#[test]
fn a_store_that_is_named_by_itself_is_shown() {
    let ground = Ground::new();
    put(&ground, ".ssh/known_hosts");
    let mut request = ground.high("home/project");
    request.options.sandbox.read = vec![ground.path("home/.ssh/known_hosts")];
    let made = resolve(&ground.settings(), &request);
    let made = made.expect("it can be").expect("at level high");
    assert_eq!(made.hide, [ground.path("state")]);
    request.options.sandbox.read.push(ground.path("home"));
    let made = resolve(&ground.settings(), &request);
    let made = made.expect("it can be").expect("at level high");
    assert!(made.hide.contains(&ground.path("home/.ssh")), "{made:?}");
}
