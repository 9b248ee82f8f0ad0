//! Embeds the page of `web/dist` in release builds, which build it first where that is missing or
//! old. A page that cannot be built is left out: the program says so where the page would be.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;
use std::{env, fmt, io};

use miniz_oxide::deflate::compress_to_vec;
use sha2::{Digest as _, Sha256};

#[path = "src/page_source.rs"]
mod page_source;

use page_source::{PageFacts, PageSource, page_source};

/// The source of the page, from the directory of the crate.
const SOURCE: &str = "../../web";
/// The built page, below it.
const BUILT: &str = "dist";
/// What of the source directory the page is not made of: what is built or installed, and the
/// browser tests with their results.
const NO_SOURCE: [&str; 5] = [
    BUILT,
    "node_modules",
    "browser",
    "test-results",
    "playwright-report",
];
/// What npm installed, and from when.
const INSTALLED: &str = "node_modules/.package-lock.json";
/// By the lock file; no package needs its scripts to be run.
const INSTALL: [&str; 5] = [
    "ci",
    "--ignore-scripts",
    "--include=dev",
    "--no-audit",
    "--no-fund",
];
/// The best compression that deflate has.
const LEVEL: u8 = 10;
/// The fixed header of gzip: deflate, no flags, no time, best compression, no system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/page_source.rs");
    println!("cargo::rerun-if-env-changed=OSTLER_SKIP_WEB");
    let source = PathBuf::from(SOURCE);
    let built = source.join(BUILT);
    let inputs = inputs(&source)?;
    let facts = PageFacts {
        is_release: env::var("PROFILE").is_ok_and(|profile| profile == "release"),
        is_skipped: env::var("OSTLER_SKIP_WEB").is_ok_and(|skip| skip == "1"),
        has_source: source.join("package.json").is_file(),
        built: changed(&built.join("index.html")),
        changed: inputs.iter().filter_map(|path| newest(path)).max(),
    };
    let absent = match page_source(&facts) {
        PageSource::Absent(reason) => Some(reason.to_owned()),
        PageSource::Built => {
            watch(&inputs);
            None
        }
        PageSource::Build => {
            watch(&inputs);
            build_or_reason(&source, facts.built.is_some())
        }
    };
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    write_table(&built, absent.as_deref(), Path::new(&out))
}

/// What the page is made of: the entries of its source directory.
fn inputs(source: &Path) -> io::Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(source) else {
        return Ok(Vec::new());
    };
    let mut inputs = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with('.') && !NO_SOURCE.contains(&&*name) {
            inputs.push(source.join(&*name));
        }
    }
    Ok(inputs)
}

/// Runs this again when one of these changes.
fn watch(paths: &[PathBuf]) {
    for path in paths {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// Runs this again when the page could be built: when Node.js may have been installed, else with
/// every build.
fn watch_for_remedy(error: &BuildError) {
    match error {
        BuildError::NoNode => {
            let path = env::var_os("PATH").unwrap_or_default();
            let dirs = env::split_paths(&path).filter(|dir| dir.is_dir());
            watch(&dirs.collect::<Vec<_>>());
        }
        BuildError::Failed(_) => println!("cargo::rerun-if-changed=never"),
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// When the newest file at or below this path was changed.
fn newest(path: &Path) -> Option<SystemTime> {
    match fs::read_dir(path) {
        Ok(entries) => entries
            .filter_map(|entry| newest(&entry.ok()?.path()))
            .max(),
        Err(_) => changed(path),
    }
}

/// Why the page cannot be built.
enum BuildError {
    NoNode,
    Failed(String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNode => f.write_str("Node.js with npm was not there when it was built"),
            Self::Failed(message) => f.write_str(message),
        }
    }
}

/// Builds the page. Where that fails, an older one is better than none.
fn build_or_reason(source: &Path, has_older: bool) -> Option<String> {
    let error = build(source).err()?;
    println!("cargo::warning=the web interface is not built: {error}");
    watch_for_remedy(&error);
    (!has_older).then(|| error.to_string())
}

/// Builds the page by its lock file.
fn build(source: &Path) -> Result<(), BuildError> {
    let installed = changed(&source.join(INSTALLED));
    if installed.is_none() || installed < changed(&source.join("package-lock.json")) {
        npm(source, &INSTALL)?;
    }
    npm(source, &["run", "build"])?;
    // What was built is newer than its source, also where nothing in it changed.
    let index = source.join(BUILT).join("index.html");
    let touched = File::options().append(true).open(index);
    let touched = touched.and_then(|index| index.set_modified(SystemTime::now()));
    touched.map_err(|error| {
        BuildError::Failed(format!("npm run build made no {BUILT}/index.html: {error}"))
    })
}

/// Runs npm.
///
/// # Errors
/// With its last words.
fn npm(source: &Path, arguments: &[&str]) -> Result<(), BuildError> {
    let words = arguments.join(" ");
    let mut npm = Command::new("npm");
    match npm.args(arguments).current_dir(source).output() {
        Ok(Output { status, .. }) if status.success() => Ok(()),
        Ok(Output { stdout, stderr, .. }) => {
            let text = [stdout, stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            let last = last.unwrap_or("it said nothing");
            Err(BuildError::Failed(format!("`npm {words}` failed: {last}")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(BuildError::NoNode),
        Err(error) => Err(BuildError::Failed(format!("`npm {words}`: {error}"))),
    }
}

/// Writes the table of files, each compressed beside it; an empty one where the page is absent.
fn write_table(built: &Path, absent: Option<&str>, out: &Path) -> io::Result<()> {
    let mut paths = Vec::new();
    if absent.is_none() {
        collect(built, "", &mut paths)?;
    }
    paths.sort();
    let mut table = String::from(
        "/// The files of the page, by path; none where it was not built.\n\
         pub static FILES: &[EmbeddedFile] = &[\n",
    );
    for (number, path) in paths.iter().enumerate() {
        let content = fs::read(built.join(path))?;
        let name = format!("{number}.gz");
        fs::write(out.join(&name), gzip(&content)?)?;
        let hash = Sha256::digest(&content);
        let sha256: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let entry = writeln!(
            table,
            "EmbeddedFile {{ path: {path:?}, sha256: {sha256:?}, \
             gzip: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\")) }},"
        );
        entry.map_err(io::Error::other)?;
    }
    let why = writeln!(
        table,
        "];\n/// Why the page was not built; none where it was.\n\
         pub const ABSENT: Option<&str> = {absent:?};"
    );
    why.map_err(io::Error::other)?;
    fs::write(out.join("files.rs"), table)
}

/// The regular files below a directory, by their paths from `prefix` on.
fn collect(dir: &Path, prefix: &str, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{prefix}{}", name.to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), paths)?;
        } else if entry.file_type()?.is_file() {
            paths.push(path);
        }
    }
    Ok(())
}

/// As gzip (RFC 1952).
fn gzip(content: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(content.len()).map_err(io::Error::other)?;
    let mut compressed = HEADER.to_vec();
    compressed.extend(compress_to_vec(content, LEVEL));
    compressed.extend(crc32fast::hash(content).to_le_bytes());
    compressed.extend(length.to_le_bytes());
    Ok(compressed)
}
