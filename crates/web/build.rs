//! Embeds the page of `web/dist`, which it builds first in release builds where that is missing or
//! old. A page that cannot be built is left out: the program says so where the page would be.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;
use std::{env, io};

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
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let inputs = inputs(&source)?;
    let facts = PageFacts {
        is_release,
        is_skipped: env::var("OSTLER_SKIP_WEB").is_ok_and(|skip| skip == "1"),
        has_source: source.join("package.json").is_file(),
        built: changed(&built.join("index.html")),
        changed: inputs.iter().filter_map(|path| newest(path)).max(),
    };
    let page = page_source(&facts);
    watch(&source, page, inputs.iter().filter(|_| is_release));
    let absent = match page {
        PageSource::Built => None,
        PageSource::Build => build(&source).err().filter(|reason| {
            println!("cargo::warning=the web interface is not built: {reason}");
            facts.built.is_none()
        }),
        PageSource::Absent(reason) => Some(reason.to_owned()),
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

/// Runs this again when these change, and when somebody else builds the page. A path that is missing
/// would run it with every build, so that the directory of the built page is made.
fn watch<'a>(source: &Path, page: PageSource, inputs: impl Iterator<Item = &'a PathBuf>) {
    let built = source.join(BUILT);
    let is_own = page == PageSource::Build;
    if source.is_dir() && !is_own && (built.is_dir() || fs::create_dir(&built).is_ok()) {
        println!("cargo::rerun-if-changed={}", built.display());
    }
    for input in inputs {
        println!("cargo::rerun-if-changed={}", input.display());
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

/// Builds the page by its lock file.
fn build(source: &Path) -> Result<(), String> {
    let installed = changed(&source.join(INSTALLED));
    if installed.is_none() || installed < changed(&source.join("package-lock.json")) {
        let install = [
            "ci",
            "--ignore-scripts",
            "--include=dev",
            "--no-audit",
            "--no-fund",
        ];
        npm(source, &install)?;
    }
    npm(source, &["run", "build"])?;
    // What was built is newer than its source, also where nothing in it changed.
    let index = source.join(BUILT).join("index.html");
    let touch = || {
        File::options()
            .append(true)
            .open(&index)?
            .set_modified(SystemTime::now())
    };
    touch().map_err(|error| format!("npm run build made no {BUILT}/index.html: {error}"))
}

/// Runs npm.
///
/// # Errors
/// Its last words.
fn npm(source: &Path, arguments: &[&str]) -> Result<(), String> {
    let run = Command::new("npm")
        .args(arguments)
        .current_dir(source)
        .output();
    let words = arguments.join(" ");
    match run {
        Ok(Output { status, .. }) if status.success() => Ok(()),
        Ok(Output { stdout, stderr, .. }) => {
            let text = [stdout, stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            let last = last.unwrap_or("it said nothing");
            Err(format!("npm {words} failed: {last}"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err("Node.js with npm is not installed".to_owned())
        }
        Err(error) => Err(format!("npm {words}: {error}")),
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
