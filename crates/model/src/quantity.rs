//! The text form of resource limits: `512M`, `1.5G`, `0.5` of a core.

use std::str::FromStr;

use thiserror::Error;

use crate::isolation::Limits;

/// The error for a text that is not an amount, or a name that is not a limit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("limit '{name}' is '{given}'; allowed: {allowed}")]
pub struct QuantityError {
    /// The name of the limit.
    pub name: String,
    /// The text as given.
    pub given: String,
    /// The allowed values.
    pub allowed: &'static str,
}

/// The names of the limits, in the order in which they are listed.
pub const LIMIT_NAMES: [&str; 6] = ["memory", "cpus", "pids", "disk", "files", "file_size"];

const BYTES: &str = "bytes such as 1000000, 512K, 512M or 1.5G";
const CPUS: &str = "cores such as 0.5 or 2, from 0.01 to 1024";
const COUNT: &str = "a whole number from 1 to 4194304";
const NAMES: &str = "memory, cpus, pids, disk, files, file_size";

/// The most processes or files: the kernel's own bound on pids (`PID_MAX_LIMIT`).
const COUNT_MAX: u32 = 1 << 22;
/// The most cores.
const CPUS_MAX: f64 = 1_024.0;
/// The smallest share of a core; the kernel's scheduling periods do not allow less.
const CPUS_MIN: f64 = 0.01;

impl Limits {
    /// Sets one limit by its name in [`LIMIT_NAMES`].
    ///
    /// # Errors
    /// When there is no limit of this name, or `given` is not an amount of it.
    pub fn set(&mut self, name: &str, given: &str) -> Result<(), QuantityError> {
        let error = |allowed| QuantityError {
            name: name.to_owned(),
            given: given.to_owned(),
            allowed,
        };
        let given = given.trim();
        match name {
            "memory" => self.memory_bytes = Some(parse_bytes(given).ok_or_else(|| error(BYTES))?),
            "disk" => self.disk_bytes = Some(parse_bytes(given).ok_or_else(|| error(BYTES))?),
            "file_size" => self.file_bytes = Some(parse_bytes(given).ok_or_else(|| error(BYTES))?),
            "cpus" => self.cpu_millis = Some(parse_cpu_millis(given).ok_or_else(|| error(CPUS))?),
            "pids" => self.pids = Some(parse_count(given).ok_or_else(|| error(COUNT))?),
            "files" => self.open_files = Some(parse_count(given).ok_or_else(|| error(COUNT))?),
            _ => {
                return Err(QuantityError {
                    name: name.to_owned(),
                    given: given.to_owned(),
                    allowed: NAMES,
                });
            }
        }
        Ok(())
    }
}

/// Parses a number of bytes; K, M, G and T are powers of 1,024. None for an empty text and for what
/// is not an amount.
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.strip_suffix(['b', 'B']).unwrap_or(text);
    let text = text.strip_suffix('i').unwrap_or(text);
    let shift = match text.bytes().last()?.to_ascii_uppercase() {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        b'T' => 40,
        _ => 0,
    };
    let number = if shift == 0 {
        text
    } else {
        &text[..text.len() - 1]
    };
    let is_numeric = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    if number.is_empty() || !number.bytes().all(is_numeric) {
        return None;
    }
    if let Ok(whole) = u64::from_str(number) {
        return whole.checked_mul(1 << shift).filter(|it| *it > 0);
    }
    let scaled = f64::from_str(number).ok()? * (1_u64 << shift) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the range that was checked"
    )]
    (1.0..1e18).contains(&scaled).then_some(scaled as u64)
}

fn parse_cpu_millis(text: &str) -> Option<u32> {
    let cores = f64::from_str(text).ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the range that was checked"
    )]
    (CPUS_MIN..=CPUS_MAX)
        .contains(&cores)
        .then_some((cores * 1_000.0).round() as u32)
}

fn parse_count(text: &str) -> Option<u32> {
    let count = u32::from_str(text).ok()?;
    (1..=COUNT_MAX).contains(&count).then_some(count)
}
