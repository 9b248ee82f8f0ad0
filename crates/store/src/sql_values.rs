//! Values as both databases store them.

use ostler_model::{RequestChannel, Timestamp};

const LOCAL: &str = "local";
const NETWORK: &str = "network";

pub(crate) const fn channel_name(channel: RequestChannel) -> &'static str {
    match channel {
        RequestChannel::Local => LOCAL,
        RequestChannel::Network => NETWORK,
    }
}

pub(crate) fn channel(name: &str) -> RequestChannel {
    match name {
        NETWORK => RequestChannel::Network,
        _ => RequestChannel::Local,
    }
}

/// A number as databases store it; beyond their range, the largest one.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

pub(crate) fn timestamp(microseconds: i64) -> Timestamp {
    Timestamp::from_microsecond(microseconds).unwrap_or(Timestamp::UNIX_EPOCH)
}
