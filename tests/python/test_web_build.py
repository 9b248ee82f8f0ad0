"""What a build of the program does for the page: the build script of `crates/web`, in a workspace of its own, with an npm
that only writes a page."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Writes a page that names how often it was built, and notes what it was asked for.
NPM = """#!/bin/sh
echo "$*" >> "$NPM_LOG"
case "$1 $2" in
"ci "*) mkdir -p node_modules && touch node_modules/.package-lock.json ;;
"run build") [ ! -e fail ] || { echo "error: no page today" >&2; exit 1; }
    mkdir -p dist/assets && echo "page $(grep -c build "$NPM_LOG")" > dist/index.html && echo "a" > dist/assets/a-1.js ;;
esac
"""
#: What building takes besides cargo and rustc: a linker, as the compiler finds it.
LINKER = ("cc", "gcc", "ld", "as", "sh", "mkdir", "touch", "grep")

pytestmark = [pytest.mark.full, pytest.mark.limit(300)]


class Workspace:
    """The crate and a source of a page, in `directory`."""

    def __init__(self, directory):
        self.directory, self.web, self.log = directory, directory / "web", directory / "npm.log"
        shutil.copytree(ROOT / "crates" / "web", directory / "crates" / "web")
        shutil.copy(ROOT / "Cargo.lock", directory)
        manifest = (ROOT / "Cargo.toml").read_text()
        manifest = manifest.replace('members = ["crates/*", "xtask"]\ndefault-members = ["crates/cli"]', 'members = ["crates/web"]')
        (directory / "Cargo.toml").write_text(manifest)
        (self.web / "src").mkdir(parents=True)
        for name in ("package.json", "package-lock.json", "src/main.ts"):
            (self.web / name).write_text("{}")
        self.bin = directory / "bin"
        self.bin.mkdir()
        for name in LINKER:
            (self.bin / name).symlink_to(shutil.which(name))
        self.install_npm()

    def install_npm(self):
        (self.bin / "npm").write_text(NPM)
        (self.bin / "npm").chmod(0o755)

    def build(self, *flags, skip=None):
        """The table that the build script wrote, what npm was asked for, and what cargo said."""
        self.log.write_text("")
        cargo = Path(shutil.which("cargo")).parent
        env = os.environ | {"PATH": f"{self.bin}:{cargo}", "NPM_LOG": str(self.log), "CARGO_TARGET_DIR": str(self.directory / "target")}
        env.pop("OSTLER_SKIP_WEB", None)
        if skip is not None:
            env["OSTLER_SKIP_WEB"] = skip
        done = subprocess.run(
            ["cargo", "build", "--offline", *flags], cwd=self.directory, env=env, capture_output=True, text=True, timeout=250, check=False)
        assert done.returncode == 0, done.stderr
        profile = "release" if "--release" in flags else "debug"
        tables = (self.directory / "target" / profile / "build").glob("ostler-web-*/out/files.rs")
        table = max(tables, key=lambda path: path.stat().st_mtime).read_text()
        return table, self.log.read_text().splitlines(), done.stderr

    def change(self, name):
        (self.web / name).write_text("{ }")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A workspace whose build script is compiled already."""
    workspace = Workspace(tmp_path_factory.mktemp("page"))
    workspace.build("--release", skip="1")
    return workspace


@pytest.fixture
def workspace(compiled):
    yield compiled
    shutil.rmtree(compiled.web / "dist", ignore_errors=True)
    shutil.rmtree(compiled.web / "node_modules", ignore_errors=True)
    (compiled.web / "fail").unlink(missing_ok=True)
    compiled.install_npm()
    # The next test begins as after a change.
    compiled.change("src/main.ts")


CI = "ci --ignore-scripts --include=dev --no-audit --no-fund"


def test_a_release_builds_a_page_that_is_missing_once_and_again_when_its_source_changes(workspace):
    table, asked, _ = workspace.build("--release")
    assert asked == [CI, "run build"]
    assert '"index.html"' in table and '"assets/a-1.js"' in table and "ABSENT: Option<&str> = None" in table
    again, asked, said = workspace.build("--release")
    assert (again, asked) == (table, []) and "Compiling" not in said, said
    workspace.change("src/main.ts")
    assert workspace.build("--release")[1] == ["run build"]
    workspace.change("package-lock.json")
    os.utime(workspace.web / "node_modules" / ".package-lock.json", (1, 1))
    assert workspace.build("--release")[1] == [CI, "run build"]


def test_a_development_build_and_one_that_skips_it_run_nothing(workspace):
    workspace.build("--release")
    for flags, skip, word in ((["--release"], "1", "OSTLER_SKIP_WEB=1"), ([], None, "development build")):
        table, asked, _ = workspace.build(*flags, skip=skip)
        assert asked == [] and "index.html" not in table and word in table, table


def test_without_node_the_program_is_built_and_built_again_once_it_is_there(workspace):
    (workspace.bin / "npm").unlink()
    table, asked, said = workspace.build("--release")
    assert asked == [] and 'Some("Node.js with npm was not there' in table and "warning" in said, (table, said)
    assert "Compiling" not in workspace.build("--release")[2]
    workspace.install_npm()
    table, asked, _ = workspace.build("--release")
    assert asked == [CI, "run build"] and "index.html" in table


def test_a_page_that_cannot_be_built_is_tried_again_and_an_older_one_kept(workspace):
    (workspace.web / "fail").write_text("")
    table, asked, said = workspace.build("--release")
    assert asked == [CI, "run build"] and "no page today" in table and "no page today" in said, (table, said)
    (workspace.web / "fail").unlink()
    assert '"index.html"' in workspace.build("--release")[0]
    (workspace.web / "fail").write_text("")
    workspace.change("src/main.ts")
    table, asked, said = workspace.build("--release")
    assert asked == ["run build"] and '"index.html"' in table and "no page today" in said, (table, said)
