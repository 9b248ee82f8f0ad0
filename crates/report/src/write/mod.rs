//! Writers of standard formats.

mod junit;
mod sarif;
mod source_uri;
mod subject;
mod xml;

pub use junit::write_junit;
pub use sarif::write_sarif;
pub use subject::ReportSubject;
