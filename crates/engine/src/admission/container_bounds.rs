//! The bounds of what a request may ask of its container: the form of its options, and the settings.

use std::net::IpAddr;
use std::time::Duration;

use ostler_model::container::{CAPABILITIES_MAX, VOLUMES_MAX};
use ostler_model::{ContainerHealth, ContainerOptions, IsolationLevel, NetworkAccess, suggestion};

use super::arguments::{self, ARGUMENT_BYTES};
use super::sandbox_bounds::{check_count, invalid};
use crate::error::Error;
use crate::settings::{ContainerSettings, Settings};

/// The most name servers of a container, as resolv.conf(5) has it.
const NAME_SERVERS_MAX: usize = 3;
/// The longest image, network, user and proxy, in bytes.
const NAME_BYTES: usize = 512;
/// The most words of a health check.
const HEALTH_WORDS: usize = 64;
/// The most failures of a health check in a row.
const RETRIES_MAX: u32 = 100;
/// The longest grace period, interval and timeout, in seconds.
const TIME_MAX_S: u64 = 24 * 60 * 60;

/// capabilities(7) without `CAP_`.
const CAPABILITIES: [&str; 41] = [
    "AUDIT_CONTROL",
    "AUDIT_READ",
    "AUDIT_WRITE",
    "BLOCK_SUSPEND",
    "BPF",
    "CHECKPOINT_RESTORE",
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "IPC_OWNER",
    "KILL",
    "LEASE",
    "LINUX_IMMUTABLE",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "PERFMON",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYSLOG",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_CHROOT",
    "SYS_MODULE",
    "SYS_NICE",
    "SYS_PACCT",
    "SYS_PTRACE",
    "SYS_RAWIO",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "WAKE_ALARM",
];

/// Whether options are well-formed, whatever the settings allow. Also for the settings' own.
///
/// # Errors
/// The first that is not.
pub fn check_options(options: &ContainerOptions) -> Result<(), Error> {
    if let Some(image) = &options.image {
        check_image(image)?;
    }
    if let Some(network) = &options.network {
        check_network(network)?;
    }
    check_count("name servers", options.dns.len(), NAME_SERVERS_MAX)?;
    for server in &options.dns {
        if server.parse::<IpAddr>().is_err() {
            return Err(invalid("name server", server, "it is no IP address"));
        }
    }
    if let Some(proxy) = &options.proxy {
        check_proxy(proxy)?;
    }
    if let Some(user) = &options.user {
        check_user(user)?;
    }
    check_count("capabilities", options.cap_add.len(), CAPABILITIES_MAX)?;
    for name in &options.cap_add {
        check_capability(name)?;
    }
    check_count("volumes", options.volumes.len(), VOLUMES_MAX)?;
    if let Some(health) = &options.health {
        check_health(health)?;
    }
    check_time("stop grace", options.stop_grace)?;
    arguments::check_duration("idle timeout", options.idle_timeout.unwrap_or_default())?;
    Ok(())
}

fn check_image(image: &str) -> Result<(), Error> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-/:@+".contains(c);
    let starts = image.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && image.len() <= NAME_BYTES && image.chars().all(is_allowed) {
        return Ok(());
    }
    let problem = "it must be the name or the id of an image (name, name:tag, name@digest)";
    Err(invalid("image", image, problem))
}

/// The host's network and that of another container are never shared.
fn check_network(network: &str) -> Result<(), Error> {
    if network == "host" || network.contains(':') {
        let problem = "a container has a network of its own";
        return Err(invalid("network", network, problem));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let starts = network.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && network.len() <= NAME_BYTES && network.chars().all(is_allowed) {
        return Ok(());
    }
    Err(invalid("network", network, "it is no name of a network"))
}

fn check_proxy(proxy: &str) -> Result<(), Error> {
    let refuse = |problem| Err(invalid("proxy", proxy, problem));
    const SCHEMES: [&str; 4] = ["http://", "https://", "socks5://", "socks5h://"];
    let rest = SCHEMES.iter().find_map(|it| proxy.strip_prefix(it));
    let authority = rest.and_then(|it| it.split(['/', '?', '#']).next());
    let is_plain = proxy.chars().all(|c| c.is_ascii_graphic());
    match authority {
        Some(authority) if authority.contains('@') => {
            refuse("its credentials would be seen by everything in the container")
        }
        Some(authority) if is_plain && !authority.is_empty() && proxy.len() <= NAME_BYTES => Ok(()),
        Some(_) | None => refuse("it is no URL of a proxy (http://host:port)"),
    }
}

fn check_user(user: &str) -> Result<(), Error> {
    let mut parts = user.splitn(2, ':');
    let starts = |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = |part: &str| starts(part) && part.chars().all(is_allowed);
    let is_id = |part: &str| part.parse::<u32>().is_ok();
    let is_number = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    let fits = |part: &str| is_name(part) && (!is_number(part) || is_id(part));
    if user.len() <= NAME_BYTES && parts.all(fits) {
        return Ok(());
    }
    let problem = "it is name, uid, name:group or uid:gid";
    Err(invalid("user", user, problem))
}

/// Whether a user, or its group, is root.
fn is_root(user: &str) -> bool {
    let is_zero = |part: &str| part.parse::<u32>() == Ok(0);
    user.split(':').any(|part| part == "root" || is_zero(part))
}

/// A capability's name as the specification has it: without `CAP_`, in upper case.
pub(super) fn capability_name(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    match upper.strip_prefix("CAP_") {
        Some(rest) => rest.to_owned(),
        None => upper,
    }
}

fn check_capability(name: &str) -> Result<(), Error> {
    let known = capability_name(name);
    if CAPABILITIES.contains(&known.as_str()) {
        return Ok(());
    }
    let problem = match suggestion::nearest(&known, CAPABILITIES) {
        Some(nearest) => format!("there is no such capability; did you mean {nearest}?"),
        None => "there is no such capability; capabilities(7) has them".to_owned(),
    };
    Err(invalid("capability", name, &problem))
}

fn check_health(health: &ContainerHealth) -> Result<(), Error> {
    let first = health.command.first().map_or("", String::as_str);
    if first.is_empty() {
        return Err(invalid("health check", "command", "it needs a program"));
    }
    check_count(
        "words of the health check",
        health.command.len(),
        HEALTH_WORDS,
    )?;
    for word in &health.command {
        if word.contains('\0') {
            return Err(invalid("health check", first, "a word contains a NUL byte"));
        }
        arguments::check_length("a word of the health check", word.len(), ARGUMENT_BYTES)?;
    }
    if health.retries == 0 || health.retries > RETRIES_MAX {
        let problem = format!("from 1 to {RETRIES_MAX} are allowed");
        return Err(invalid(
            "health retries",
            &health.retries.to_string(),
            &problem,
        ));
    }
    check_positive("health interval", health.interval)?;
    check_positive("health timeout", health.timeout)?;
    check_time("health start period", Some(health.start_period))
}

fn check_positive(what: &'static str, time: Duration) -> Result<(), Error> {
    if time.is_zero() {
        return Err(invalid(what, "0", "it must be longer"));
    }
    check_time(what, Some(time))
}

fn check_time(what: &'static str, time: Option<Duration>) -> Result<(), Error> {
    match time {
        Some(time) if time > Duration::from_secs(TIME_MAX_S) => {
            let given = format!("{} s", time.as_secs());
            Err(invalid(what, &given, "at most a day is allowed"))
        }
        Some(_) | None => Ok(()),
    }
}

/// What the settings let requests ask for.
pub(super) struct ContainerBounds<'a> {
    settings: &'a ContainerSettings,
    /// The networks that requests may name.
    networks: Vec<&'a str>,
}

impl<'a> ContainerBounds<'a> {
    pub(super) fn of(settings: &'a Settings) -> Self {
        let isolation = &settings.isolation;
        // A container does not lift the restrictions that all requests are held to.
        let is_restricted =
            isolation.minimum >= IsolationLevel::High && isolation.network != NetworkAccess::Full;
        let settings = &settings.container;
        let listed = settings.networks.as_ref();
        let networks = match listed {
            Some(listed) => listed.iter().map(String::as_str).collect(),
            None if is_restricted => vec!["none"],
            None => vec!["bridge", "none"],
        };
        Self { settings, networks }
    }

    /// The network where neither the request nor the settings name one.
    pub(super) fn default_network(&self, usual: &str, restricted: &str) -> String {
        let is_allowed = self.networks.contains(&usual);
        if is_allowed { usual } else { restricted }.to_owned()
    }

    /// Whether a request asks for nothing beyond the settings. What is a default may be asked for.
    pub(super) fn check(&self, options: &ContainerOptions) -> Result<(), Error> {
        let Self { settings, networks } = self;
        let defaults = &settings.defaults;
        if let Some(image) = options
            .image
            .as_ref()
            .filter(|it| defaults.image.as_ref() != Some(it))
        {
            self.check_image(image)?;
        }
        let network = options.network.as_ref();
        if let Some(network) = network.filter(|it| defaults.network.as_ref() != Some(it))
            && !networks.contains(&network.as_str())
        {
            return Err(beyond("network", network, "container.networks", networks));
        }
        if let Some(user) = options
            .user
            .as_ref()
            .filter(|it| defaults.user.as_ref() != Some(it))
        {
            self.check_user(user)?;
        }
        self.check_capabilities(options)?;
        let loosened = [
            (
                options.read_only_root == Some(false)
                    && defaults.read_only_root != Some(false)
                    && !settings.allow_writable_root,
                "a writable root",
                "container.allow_writable_root",
            ),
            (
                options.no_new_privileges == Some(false)
                    && defaults.no_new_privileges != Some(false)
                    && !settings.allow_new_privileges,
                "new privileges",
                "container.allow_new_privileges",
            ),
        ];
        match loosened.iter().find(|(is, ..)| *is) {
            Some((_, what, setting)) => {
                let problem = format!("only the setting {setting} can permit it");
                Err(invalid("request for", what, &problem))
            }
            None => Ok(()),
        }
    }

    fn check_image(&self, image: &str) -> Result<(), Error> {
        let allowed = &self.settings.images;
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => image.starts_with(start),
            None => image == pattern,
        };
        if allowed.is_empty() || allowed.iter().any(fits) {
            return Ok(());
        }
        Err(beyond("image", image, "container.images", allowed))
    }

    fn check_user(&self, user: &String) -> Result<(), Error> {
        let allowed = &self.settings.users;
        if allowed.is_empty() {
            if is_root(user) {
                let problem = "only the setting container.users can permit root";
                return Err(invalid("user", user, problem));
            }
            return Ok(());
        }
        if allowed.contains(user) {
            return Ok(());
        }
        Err(beyond("user", user, "container.users", allowed))
    }

    fn check_capabilities(&self, options: &ContainerOptions) -> Result<(), Error> {
        let settings = self.settings;
        let allowed: Vec<String> = settings
            .capabilities
            .iter()
            .chain(&settings.defaults.cap_add)
            .map(|name| capability_name(name))
            .collect();
        for name in &options.cap_add {
            if !allowed.contains(&capability_name(name)) {
                return Err(beyond(
                    "capability",
                    name,
                    "container.capabilities",
                    &allowed,
                ));
            }
        }
        Ok(())
    }
}

/// The error for a value that a list of the settings does not have.
fn beyond<T: AsRef<str>>(what: &'static str, given: &str, setting: &str, allowed: &[T]) -> Error {
    let names: Vec<&str> = allowed.iter().map(AsRef::as_ref).collect();
    let problem = if names.is_empty() {
        format!("the setting {setting} permits none")
    } else {
        format!("the setting {setting} permits {}", names.join(", "))
    };
    invalid(what, given, &problem)
}
