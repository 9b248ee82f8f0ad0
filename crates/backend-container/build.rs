//! Embeds the init of containers: builds it as a static program for the target of this build, with
//! a profile and a target directory of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use miniz_oxide::deflate::compress_to_vec;
use sha2::{Digest as _, Sha256};

/// The workspace, from the directory of the crate.
const WORKSPACE: &str = "../..";
/// The package and its binary.
const PACKAGE: &str = "ostler-container-init";
/// Its profile, which is also a directory of the target directory.
const PROFILE: &str = "init";
/// What it is made of, from the workspace.
const SOURCES: [&str; 7] = [
    "crates/container-init",
    "crates/sandbox/src",
    "crates/sys/src",
    "crates/model/src",
    "Cargo.lock",
    "Cargo.toml",
    "rust-toolchain.toml",
];
/// The best compression that deflate has.
const LEVEL: u8 = 10;
/// How much of a digest is used.
const HASH_BYTES: usize = 16;
/// What it is built with instead of the flags of this build: it runs in images without libraries.
const RUSTFLAGS: &str = "-C target-feature=+crt-static";
/// What this build tells its own compilers, and must not tell others.
const NOT_INHERITED: [&str; 6] = [
    "CARGO_ENCODED_RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_BUILD_TARGET",
];

fn main() -> io::Result<()> {
    let workspace = Path::new(WORKSPACE);
    println!("cargo::rerun-if-changed=build.rs");
    for source in SOURCES.map(|it| workspace.join(it)) {
        if source.exists() {
            println!("cargo::rerun-if-changed={}", source.display());
        }
    }
    let out = PathBuf::from(variable("OUT_DIR")?);
    let program = build(workspace, &out.join("target"))?;
    let program = fs::read(program)?;
    fs::write(out.join("init.deflate"), compress_to_vec(&program, LEVEL))?;
    let hash = hash(&program);
    println!("cargo::rustc-env=OSTLER_CONTAINER_INIT_HASH={hash}");
    Ok(())
}

/// The hash by which a container names the program that it runs, as `identity::hash` makes it.
fn hash(program: &[u8]) -> String {
    let hash = Sha256::digest(program);
    let digits = hash.iter().take(HASH_BYTES);
    digits.map(|byte| format!("{byte:02x}")).collect()
}

/// Builds the program, and returns its path.
fn build(workspace: &Path, target_dir: &Path) -> io::Result<PathBuf> {
    let target = variable("TARGET")?;
    let mut cargo = Command::new(variable("CARGO")?);
    cargo
        .current_dir(workspace)
        .args(["build", "--locked", "--package", PACKAGE, "--bin", PACKAGE])
        .args(["--profile", PROFILE, "--target"])
        .arg(&target)
        .arg("--target-dir")
        .arg(target_dir)
        .env("RUSTFLAGS", RUSTFLAGS);
    for name in NOT_INHERITED {
        cargo.env_remove(name);
    }
    // What the outer cargo sets for this package would make the inner one build everything again.
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_FEATURE_") {
            cargo.env_remove(name);
        }
    }
    let output = cargo.output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("the init of containers: {text}")));
    }
    let directory = target_dir.join(target).join(PROFILE);
    Ok(directory.join(PACKAGE))
}

fn variable(name: &str) -> io::Result<OsString> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("{name} is not set"));
    env::var_os(name).ok_or_else(missing)
}
