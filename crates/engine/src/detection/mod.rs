//! Which commands are services, decided by [`ostler_detect`]; [`DiskFiles`] reads the workspace's
//! files for it.

mod disk_files;

pub use disk_files::{DiskFiles, FILE_BYTES};
pub use ostler_detect::{
    DetectedService, DetectionQuery, DetectionTable, EntryInfo, NoFiles, TableError, WorkspaceFiles,
};
