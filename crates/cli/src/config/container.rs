//! The settings of containers: their values, and what the engine gets of them.

use std::path::Path;
use std::time::Duration;

use ostler_engine::admission::container_bounds::check_options;
use ostler_engine::{AllowedVolume, ContainerSettings};
use ostler_model::{ByteString, ContainerOptions, VolumeMount};

use super::load::Config;
use super::value::SettingValue;

/// The suffix of a directory whose volumes may be writable.
const WRITABLE: &str = ":rw";

/// What values of an option look like, for people.
pub(super) fn allowed(option: &str) -> &'static str {
    match option {
        "image" => "an image: name, name:tag, name@digest, or an id",
        "network" => "networks by name; never host",
        "dns" => "a comma list of at most 3 IP addresses",
        "proxy" => "a URL such as http://proxy.example:3128, without a password",
        "user" => "a user: name, uid, name:group or uid:gid",
        "cap_add" => "a comma list of capabilities(7) such as NET_RAW",
        _ => "a comma list of HOST:CONTAINER or HOST:CONTAINER:rw, with absolute paths",
    }
}

/// Whether a value is one of this option.
pub(super) fn is_valid(option: &str, words: &[String]) -> bool {
    let one = || words.first().cloned().filter(|_| words.len() == 1);
    let mut options = ContainerOptions::default();
    match option {
        "image" => options.image = one(),
        "network" => options.network = one(),
        "proxy" => options.proxy = one(),
        "user" => options.user = one(),
        "dns" => options.dns = words.to_vec(),
        "cap_add" => options.cap_add = words.to_vec(),
        _ => {
            let volumes = words.iter().map(|word| word.parse::<VolumeMount>().ok());
            let Some(volumes) = volumes.collect::<Option<Vec<_>>>() else {
                return false;
            };
            let paths = |it: &VolumeMount| [it.host.clone(), it.container.clone()];
            let mut paths = volumes.iter().flat_map(paths);
            let are_absolute = paths.all(|it| it.as_path().is_absolute());
            options.volumes = volumes;
            return are_absolute && check_options(&options).is_ok();
        }
    }
    options != ContainerOptions::default() && check_options(&options).is_ok()
}

/// Whether a text is an image, or the beginning of one with `*` after it.
pub(super) fn is_image_pattern(text: &str) -> bool {
    let start = text.strip_suffix('*').unwrap_or(text);
    text == "*" || is_valid("image", &[start.to_owned()])
}

/// The path of a socket that may be written as a URL.
pub(super) fn socket_path(text: &str) -> &str {
    text.strip_prefix("unix://").unwrap_or(text)
}

/// Parses a directory that volumes may be in.
pub(super) fn allowed_volume(text: &str) -> Option<AllowedVolume> {
    let (path, write) = match text.strip_suffix(WRITABLE) {
        Some(path) => (path, true),
        None => (text, false),
    };
    let is_path = Path::new(path).is_absolute() && !path.contains(['\0', ':']);
    is_path.then(|| AllowedVolume {
        path: ByteString::from(path),
        write,
    })
}

impl Config {
    /// The settings of containers; values were validated when they were read.
    pub(super) fn container_settings(&self) -> ContainerSettings {
        let flag = |name| self.get(name).value == SettingValue::Flag(true);
        let list = |name| self.list(name).unwrap_or_default();
        let mut settings = ContainerSettings {
            socket: self
                .text("container.socket")
                .map(|it| socket_path(&it).into()),
            defaults: self.container_defaults(),
            images: list("container.images"),
            networks: self.list("container.networks"),
            volumes: list("container.volumes")
                .iter()
                .filter_map(|it| allowed_volume(it))
                .collect(),
            capabilities: list("container.capabilities"),
            users: list("container.users"),
            allow_writable_root: flag("container.allow_writable_root"),
            allow_new_privileges: flag("container.allow_new_privileges"),
            ..ContainerSettings::default()
        };
        for name in ["memory", "cpus", "disk"] {
            if let Some(value) = self.text(&format!("container.{name}")) {
                settings.limits.set(name, &value).unwrap_or_default();
            }
        }
        settings
    }

    /// The image of containers where a request names none.
    pub(crate) fn container_image(&self) -> Option<String> {
        self.text("container.image")
    }

    /// Whether commands run in containers where a request does not say.
    pub(crate) fn defaults_to_containers(&self) -> bool {
        self.text("isolation.default").as_deref() == Some("container")
    }

    fn container_defaults(&self) -> ContainerOptions {
        let flag = |name| Some(self.get(name).value == SettingValue::Flag(true));
        let list = |name| self.list(name).unwrap_or_default();
        let idle = self.number("container.idle_seconds");
        ContainerOptions {
            image: self.container_image(),
            workspace: None,
            network: self.text("container.network"),
            dns: list("container.dns"),
            proxy: self.text("container.proxy"),
            read_only_root: flag("container.read_only_root"),
            no_new_privileges: flag("container.no_new_privileges"),
            user: self.text("container.user"),
            cap_add: list("container.cap_add"),
            volumes: list("container.mounts")
                .iter()
                .filter_map(|it| it.parse().ok())
                .collect(),
            secret_files: flag("container.secret_files"),
            health: None,
            stop_grace: self
                .number("container.stop_grace_ms")
                .map(Duration::from_millis),
            idle_timeout: idle.map(Duration::from_secs),
            reuse: flag("container.reuse"),
        }
    }
}
