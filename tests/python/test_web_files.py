"""The files of the web interface over HTTP: who gets them, how they are kept, and what a browser may do with them."""

import os
import re

import pytest

from harness import HttpDaemon, Installation
from harness.page import Page

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
          "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
FILES = {
    "index.html": '<!doctype html><script type="module" crossorigin src="./assets/index-1.js"></script><link rel="icon" href="./icon.svg">',
    "assets/index-1.js": "export const answer = 42;\n",
    "assets/style-2.css": "body { margin: 0 }\n",
    "assets/inter-3.woff2": "wOF2",
    "icon.svg": "<svg/>",
    "mcp_app.html": "<!doctype html><script>1</script>",
}
TYPES = {
    "assets/index-1.js": "text/javascript; charset=utf-8", "assets/style-2.css": "text/css; charset=utf-8",
    "assets/inter-3.woff2": "font/woff2", "icon.svg": "image/svg+xml",
}
PAGES = ["/", "/processes", "/p/k3v9x0qa", "/p/k3v9x0qa/timeline", "/terminals", "/t/k3v9x0qa", "/services", "/services/web", "/inbox",
         "/inbox/q-1", "/templates", "/templates/generate_tests", "/history", "/audit", "/resources", "/settings", "/settings/tokens"]


def written(directory, files=FILES):
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


@pytest.fixture(scope="module", params=["", "/deep/er"], ids=["root", "prefix"])
def served(request, binary):
    """A page of a daemon that requires tokens, and serves a directory; nobody is signed in."""
    installation = Installation(binary)
    try:
        directory = written(installation.dir / "dist")
        options = ["--set", f"http.web_directory={directory}", *(["--url-prefix", request.param] if request.param else [])]
        http_daemon = HttpDaemon(installation, *options)
        page = Page(http_daemon, prefix=request.param)
        page.directory = directory
        yield page
        http_daemon.end()
    finally:
        installation.close()


def ask(page, path, method="GET", **headers):
    return page.ask(method, path, headers=headers)


def test_every_page_is_the_index_and_names_its_files_below_the_prefix(served):
    for path in PAGES:
        status, headers, body = ask(served, path)
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8"), path
        assert f' src="{served.prefix}/assets/index-1.js"' in body.decode() and f' href="{served.prefix}/icon.svg"' in body.decode()
    for path in set(re.findall(r'(?:src|href)="([^"]+)"', body.decode())):
        assert served.ask("GET", path.removeprefix(served.prefix), headers={})[0] == 200, path


def test_the_interface_has_no_other_pages():
    """The server's list has every address that the interface understands, and the interface every one of the list."""
    source = (os.path.dirname(__file__), "..", "..", "web", "src", "app", "routes.ts")
    with open(os.path.join(*source)) as file:
        patterns = re.findall(r"\['([^']*)', '[\w-]+'\]", file.read())
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "crates", "http", "src", "site", "paths.rs")) as file:
        pages = re.search(r"PAGES: &\[&str\] = &\[(.*?)\];", file.read(), re.S)[1]
    pages = re.findall(r'"/([^"]*)"', pages)
    assert patterns and {re.sub(r":.*", "*", pattern) for pattern in patterns} == set(pages)


def test_every_file_has_its_type_and_all_headers(served):
    for path in ["/", "/p/k3v9", *(f"/{name}" for name in TYPES)]:
        status, headers, _ = ask(served, path)
        assert status == 200 and headers["Content-Type"] == TYPES.get(path[1:], "text/html; charset=utf-8"), path
        assert headers["Content-Security-Policy"] == POLICY and headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["Referrer-Policy"] == "no-referrer" and headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin" and headers["Cache-Control"] == "no-cache"
        assert "Set-Cookie" not in headers and headers.get_all("Content-Security-Policy") == [POLICY]
        assert not any(name.lower().startswith("access-control") for name in headers), headers.items()


def test_what_a_browser_has_is_not_sent_again(served):
    for path in ("/", "/assets/index-1.js"):
        status, headers, body = ask(served, path)
        tag = headers["ETag"]
        for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
            status, again, empty = ask(served, path, **{"If-None-Match": known})
            assert (status, empty, again["ETag"]) == (304, b"", tag), known
            assert again["Content-Security-Policy"] == POLICY and again["Cache-Control"] == "no-cache"
        assert ask(served, path, **{"If-None-Match": '"other"'})[2] == body
        status, head, empty = ask(served, path, method="HEAD")
        assert (status, empty, head["ETag"], int(head["Content-Length"])) == (200, b"", tag, len(body))


def test_a_changed_file_is_another(served):
    path = served.directory / "assets" / "index-1.js"
    before = ask(served, "/assets/index-1.js")
    path.write_text("export const answer = 43;\n")
    try:
        after = ask(served, "/assets/index-1.js", **{"If-None-Match": before[1]["ETag"]})
        assert after[0] == 200 and after[2] != before[2] and after[1]["ETag"] != before[1]["ETag"]
    finally:
        path.write_text(FILES["assets/index-1.js"])


def test_nothing_outside_the_directory_is_served(served):
    outside = served.directory.parent / "secret.js"
    outside.write_text("secret")
    links = {"assets/out.js": outside, "up.js": "../secret.js", "assets/state": served.http_daemon.installation.state}
    for name, target in links.items():
        (served.directory / name).symlink_to(target)
    (served.directory / "assets" / ".env").write_text("secret")
    os.mkfifo(served.directory / "assets" / "pipe.js")
    strange = [
        *(f"/{name}" for name in links), "/assets/state/tokens.json", "/assets/.env", "/assets/pipe.js", "/assets/../../secret.js",
        "/../secret.js", "/assets/..%2f..%2fsecret.js", "/%2e%2e/secret.js", "/assets/%2e%2e/%2e%2e/secret.js", "/..;/secret.js",
        "//secret.js", "/assets//etc/passwd", "/assets/%00", "/assets/", "/assets", "/none.js", "/assets/none.js", "/index.html",
        "/mcp_app.html", "/assets/INDEX-1.js", "/assets/index-1.js/", "/processes/", "/p/", "/unknown", "/api", "/dist/index.html",
    ]
    for path in strange:
        status, headers, body = ask(served, path)
        assert status == 401 and headers["Content-Type"] == "application/problem+json", (path, status)
        assert "secret" not in str(body), path


def test_a_page_is_only_read(served):
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        for path in ("/", "/processes", "/assets/index-1.js"):
            assert ask(served, path, method=method)[0] == 401, (method, path)


def test_a_page_under_another_name_is_not_served(served):
    """DNS rebinding: a page of the attacker's name is his, also where its address is ours."""
    for headers in ({"Host": "rebound.example"}, {"Origin": "http://other.example"}):
        status, answered, _ = ask(served, "/", **headers)
        assert status == 403 and "WWW-Authenticate" not in answered


def test_routes_below_the_same_names_stay_what_they_are(served):
    status, headers, _ = ask(served, "/api/docs")
    assert status == 200 and "sha256-" in headers["Content-Security-Policy"]
    for path in ("/api/v1/services", "/mcp", "/metrics"):
        assert ask(served, path)[0] == 401, path


def test_without_an_index_the_page_says_what_to_do(binary):
    installation = Installation(binary)
    try:
        empty = installation.dir / "empty"
        empty.mkdir()
        http_daemon = HttpDaemon(installation, "--set", f"http.web_directory={empty}")
        page = Page(http_daemon)
        for path in ("/", "/p/k3v9"):
            status, headers, body = ask(page, path)
            assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
            assert headers["Content-Security-Policy"] == POLICY
            assert b"without its web interface" in body and b"/api/docs" in body and b"<script" not in body
        written(empty)
        assert b"index-1.js" in ask(page, "/")[2]
        http_daemon.end()
    finally:
        installation.close()


def test_the_setting_is_an_absolute_path(installation):
    refused = installation.cli("serve", "--port", "0", "--set", "http.web_directory=dist", check=False)
    assert refused.returncode == 78 and b"absolute path" in refused.stderr, refused.stderr
