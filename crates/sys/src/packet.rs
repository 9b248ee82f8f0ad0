//! Messages in packets: a byte with the version of the protocol, then one postcard value. The
//! sockets are those of [`seqpacket`](crate::seqpacket).

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// A packet that cannot be encoded or decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PacketError {
    /// It has another protocol version.
    #[error("protocol version {found}, expected {expected}")]
    Version {
        /// The version of the packet.
        found: u8,
        /// The version of this process.
        expected: u8,
    },
    /// It is empty or no message of this version.
    #[error("malformed message: {0}")]
    Malformed(#[from] postcard::Error),
}

/// Encodes a message as one packet.
///
/// # Errors
/// When serde cannot serialize the message.
pub fn encode(version: u8, message: &impl Serialize) -> Result<Vec<u8>, PacketError> {
    Ok(postcard::to_extend(message, vec![version])?)
}

/// Decodes the message of a packet.
///
/// # Errors
/// When the packet has another version, or is no message of this type.
pub fn decode<T: DeserializeOwned>(version: u8, packet: &[u8]) -> Result<T, PacketError> {
    match packet.split_first() {
        Some((&found, rest)) if found == version => Ok(postcard::from_bytes(rest)?),
        Some((&found, _)) => Err(PacketError::Version {
            found,
            expected: version,
        }),
        None => Err(PacketError::Malformed(
            postcard::Error::DeserializeUnexpectedEnd,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_version_and_its_postcard_form() {
        let message = (7_u8, "text".to_owned());
        let packet = encode(3, &message).expect("encoded");
        assert_eq!(packet, b"\x03\x07\x04text");
        assert_eq!(decode::<(u8, String)>(3, &packet), Ok(message));
    }

    #[test]
    fn other_versions_and_truncated_packets_are_errors() {
        let packet = encode(3, &"text").expect("encoded");
        let version = PacketError::Version {
            found: 3,
            expected: 4,
        };
        assert_eq!(decode::<String>(4, &packet), Err(version));
        for len in [0, 1, packet.len() - 1] {
            let cut = decode::<String>(3, &packet[..len]);
            assert!(matches!(cut, Err(PacketError::Malformed(_))), "{len}");
        }
    }
}
