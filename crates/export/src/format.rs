//! The export formats.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A YAML sequence: one item for the execution, each event and each chunk.
    Yaml,
    /// An Avro object container file.
    Avro,
    /// One JSON object per line.
    Jsonl,
    /// The bytes the command printed.
    Text,
    /// An asciicast, version 2.
    Asciicast,
    /// An asciicast, version 3.
    #[serde(rename = "asciicast-v3")]
    AsciicastV3,
    /// The diagnostics in the output, as SARIF 2.1.0.
    Sarif,
    /// The results of tests in the output, as JUnit XML.
    Junit,
}

/// The error for a word that is not a format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no format: yaml, avro, jsonl, text, asciicast, asciicast-v3, sarif or junit")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        match text {
            "yaml" => Ok(Self::Yaml),
            "avro" => Ok(Self::Avro),
            "jsonl" => Ok(Self::Jsonl),
            "text" => Ok(Self::Text),
            "asciicast" => Ok(Self::Asciicast),
            "asciicast-v3" => Ok(Self::AsciicastV3),
            "sarif" => Ok(Self::Sarif),
            "junit" => Ok(Self::Junit),
            other => Err(UnknownFormat(other.to_owned())),
        }
    }
}
