//! The table `container` of a service: what it asks of its container.

use ostler_model::{BackendName, ContainerOptions, VolumeMount};

use super::ManifestError;
use super::toml_value::TomlValue;
use super::values;
use std::time::Duration;

/// Its keys.
pub(super) const KEYS: [&str; 14] = [
    "image",
    "workspace",
    "network",
    "dns",
    "proxy",
    "read_only_root",
    "no_new_privileges",
    "user",
    "cap_add",
    "volumes",
    "secret_files",
    "stop_grace",
    "idle_timeout",
    "reuse",
];

/// Parses the name of a backend; admission knows which there are.
pub(super) fn backend(item: &TomlValue<'_>) -> Result<BackendName, ManifestError> {
    const ALLOWED: &str = "\"local\" or \"container\"";
    let name = BackendName(item.string(ALLOWED)?);
    if name == BackendName::local() || name == BackendName::container() {
        return Ok(name);
    }
    Err(item.invalid(ALLOWED))
}

/// Parses the table.
pub(super) fn container(item: &TomlValue<'_>) -> Result<ContainerOptions, ManifestError> {
    const ALLOWED: &str = "a table, as in { image = \"node:22\", network = \"none\" }";
    let section = item.table().ok_or_else(|| item.invalid(ALLOWED))?;
    section.reject_unknown_keys(&KEYS)?;
    let text = |it: &TomlValue<'_>| it.string("a text");
    let texts = |it: &TomlValue<'_>| it.strings("a list of texts");
    let span = |it: &TomlValue<'_>| values::millis(it).map(Duration::from_millis);
    Ok(ContainerOptions {
        image: section.read("image", text)?,
        workspace: section.read("workspace", text)?.map(Into::into),
        network: section.read("network", text)?,
        dns: section.read("dns", texts)?.unwrap_or_default(),
        proxy: section.read("proxy", text)?,
        read_only_root: section.read("read_only_root", TomlValue::flag)?,
        no_new_privileges: section.read("no_new_privileges", TomlValue::flag)?,
        user: section.read("user", text)?,
        cap_add: section.read("cap_add", texts)?.unwrap_or_default(),
        volumes: section.read("volumes", volumes)?.unwrap_or_default(),
        secret_files: section.read("secret_files", TomlValue::flag)?,
        health: None,
        stop_grace: section.read("stop_grace", span)?,
        idle_timeout: section.read("idle_timeout", span)?,
        reuse: section.read("reuse", TomlValue::flag)?,
    })
}

fn volumes(item: &TomlValue<'_>) -> Result<Vec<VolumeMount>, ManifestError> {
    let texts =
        item.strings("a list of volumes, each \"HOST:CONTAINER\" or \"HOST:CONTAINER:rw\"")?;
    texts
        .iter()
        .map(|text| {
            text.parse()
                .map_err(|error| item.error(format!("is wrong: {error}")))
        })
        .collect()
}
