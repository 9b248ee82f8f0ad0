"""Signing in at the page: by token and by link, with a cookie and a page key of which neither is enough, and for requests
of the page itself only."""

import contextlib
import json
import re
import time

import pytest

from harness import HttpDaemon, Installation
from harness.api_surface import documented
from harness.installation import ProblemError
from harness.page import SESSION, Page, link, printed_link

#: Other pages that a browser has open: another port of this host, other sites, a sandboxed frame.
FOREIGN = [
    {"Origin": "http://127.0.0.1:1"}, {"Origin": "http://localhost:3000"}, {"Origin": "null"},
    {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "none"},
]
HEALTH = "/api/v1/health"


@pytest.fixture(scope="module")
def served(binary):
    """A daemon that requires tokens, with the link that it printed."""
    installation = Installation(binary)
    try:
        made(installation, "first")
        http_daemon = HttpDaemon(installation)
        http_daemon.link = printed_link(http_daemon)
        yield http_daemon
        http_daemon.end()
    finally:
        installation.close()


@pytest.fixture
def page(served):
    """A page that is signed in with a token of its own."""
    page = Page(served)
    page.token = made(served.installation, f"page-{time.monotonic_ns()}", "--scope", "sessions:all")
    page.answer = page.sign_in(token=page.token)
    return page


def made(installation, name, *args):
    return json.loads(installation.cli("token", "new", name, *args, "--json").stdout)["token"]


def tokens(installation):
    return {token["name"]: token for token in json.loads(installation.cli("token", "list", "--json").stdout)}


def test_a_token_signs_in_and_scripts_get_half_of_it(served, page):
    assert page.is_signed_in()
    assert page.answer == {"token_needed": True, "principal": page.answer["principal"], "scopes": ["sessions:all"],
                           "page_key": page.page_key}
    ((name, value),) = page.cookies.items()
    assert name == f"ostler_session_{page.host.split(':')[1]}"
    assert f"ostler_{value}{page.page_key}" == page.token and (len(value), len(page.page_key)) == (22, 21)
    cookie = page.set_cookie
    assert cookie["httponly"] and cookie["samesite"] == "Strict" and cookie["path"] == "/" and not cookie["secure"], cookie
    assert not cookie["domain"] and int(cookie["max-age"]) == 30 * 24 * 60 * 60, cookie
    status, _, body = page.ask("GET", SESSION)
    assert (status, body) == (200, {key: value for key, value in page.answer.items() if key != "page_key"})
    started = page.ask("POST", "/api/v1/executions", {
        "command": {"argv": {"program": "true", "args": []}}, "cwd": str(served.installation.work)})
    assert started[0] in (200, 201), started


def test_the_answer_with_the_secret_is_not_kept_by_caches(served, page):
    status, headers, _ = page.ask("POST", SESSION, {"token": page.token}, page.own())
    assert (status, headers["Cache-Control"]) == (200, "no-store")


def test_the_cookie_ends_with_the_token(served):
    page = Page(served)
    answer = page.sign_in(token=made(served.installation, "short", "--expires", "1h"))
    assert 3_500 < int(page.set_cookie["max-age"]) <= 3_600 and answer["expires"], page.set_cookie


def test_over_https_the_cookie_is_for_https_only(binary):
    """A proxy in front of the daemon: the browser names its address in `Origin`."""
    installation = Installation(binary)
    try:
        secret = made(installation, "first")
        http_daemon = HttpDaemon(installation, "--set", "http.origins=https://ostler.example")
        page = Page(http_daemon)
        proxied = {"Origin": "https://ostler.example", "Sec-Fetch-Site": "same-origin"}
        status, headers, body = page.ask("POST", SESSION, {"token": secret}, proxied)
        assert status == 200, body
        page.keep(headers)
        assert page.set_cookie["secure"]
        proxied |= {"Cookie": page.own()["Cookie"], "Ostler-Page-Key": body["page_key"]}
        assert page.ask("GET", HEALTH, headers=proxied)[0] == 200
        other = proxied | {"Origin": "https://other.example"}
        assert page.ask("GET", HEALTH, headers=other)[0] == 403
        http_daemon.end()
    finally:
        installation.close()


def test_a_printed_link_signs_in_once_and_its_token_is_listed_and_revoked(served):
    url, code = served.link
    assert url == f"{served.base}/#code={code}"
    page, other = Page(served), Page(served)
    answer = page.sign_in(code=code)
    assert page.is_signed_in() and answer["scopes"] == ["sessions:all"]
    assert int(page.set_cookie["max-age"]) in range(30 * 86_400 - 60, 30 * 86_400 + 1)
    status, headers, problem = other.ask("POST", SESSION, {"code": code}, other.own())
    assert status == 401 and "it was used" in problem["message"] and "ostler token link" in problem["hint"], problem
    assert "Set-Cookie" not in headers and headers["WWW-Authenticate"].startswith("Bearer"), headers.items()
    (name,) = (name for name in tokens(served.installation) if name.startswith("browser-"))
    assert re.fullmatch(r"browser-\d{8}", name) and tokens(served.installation)[name]["used"]
    served.installation.cli("token", "revoke", name)
    assert not page.is_signed_in()


def test_a_link_is_made_over_the_socket_only(served, page):
    url, code = link(served.installation)
    assert url == f"{served.base}/#code={code}" and len(code) == 22
    as_json = json.loads(served.installation.cli("token", "link", "--json").stdout)
    assert as_json["url"].startswith(f"{served.base}/#code=") and as_json["expires"]
    status, _, problem = page.ask("POST", "/api/v1/web/codes")
    assert status == 403 and "over its socket" in problem["message"], problem
    with pytest.raises(ProblemError) as refused:
        served.installation.rest("POST", "/api/v1/web/codes", session="agent")
    assert refused.value.status == 403
    Page(served).sign_in(code=code)


def test_signing_out_deletes_the_cookie_and_revokes_what_a_link_made(served, page):
    by_link = Page(served)
    before = set(tokens(served.installation))
    by_link.sign_in(code=link(served.installation)[1])
    (name,) = set(tokens(served.installation)) - before
    kept = by_link.credentials()
    by_link.sign_out()
    assert by_link.set_cookie["max-age"] == "0" and not by_link.cookies
    assert by_link.ask("GET", HEALTH, headers=kept)[0] == 401, "who kept both halves is not let in"
    assert name not in tokens(served.installation)
    # A person's own token stays: they may use it elsewhere.
    kept = page.credentials()
    page.sign_out()
    assert page.ask("GET", HEALTH, headers=kept)[0] == 200
    # Who is not signed in is signed out, too.
    Page(served).sign_out()


@pytest.mark.parametrize("body, words", [
    ({}, "'token' and 'code'"), ({"token": "ostler_x", "code": "x"}, "'token' and 'code'"), ({"token": 1}, "token"),
    ({"password": "x"}, "password"), ([], "body"), ("{", "parsing"),
])
def test_bad_sign_ins_say_what_is_allowed(served, body, words):
    page = Page(served)
    status, headers, problem = page.ask("POST", SESSION, body, page.own() | {"Content-Type": "application/json"})
    assert status == 422 and words in problem["message"] and "Set-Cookie" not in headers, problem


def test_a_body_that_is_too_large_is_refused(served):
    page = Page(served)
    status, _, problem = page.ask("POST", SESSION, {"token": "x" * 5_000}, page.own())
    assert status == 413 and "4096" in problem["message"], problem


def test_both_halves_of_one_token_are_needed(served, page):
    other = Page(served)
    other.sign_in(token=made(served.installation, f"other-{time.monotonic_ns()}"))
    both = page.credentials()
    cookie = {key: value for key, value in both.items() if key != "Ostler-Page-Key"}
    key = {key: value for key, value in both.items() if key != "Cookie"}
    wrong = {
        "page key": cookie, "cookie": key, "known": both | {"Ostler-Page-Key": other.page_key},
        "not known": both | {"Ostler-Page-Key": "A" * 21}, "needs its page key": both | {"Ostler-Page-Key": page.page_key[:-1]},
    }
    for words, headers in wrong.items():
        status, answered, problem = page.ask("GET", HEALTH, headers=headers)
        assert status == 401 and words in problem["message"] and answered["WWW-Authenticate"], (words, problem)
    assert page.ask("GET", HEALTH, headers=other.own() | {"Ostler-Page-Key": page.page_key})[0] == 401
    assert page.ask("GET", HEALTH)[0] == 200


def test_other_cookies_of_the_host_do_not_sign_out(served, page):
    """A server of another port may set cookies with the same name for longer paths, which browsers send first."""
    ((name, value),) = page.cookies.items()
    for other in (f"{name}={'x' * 22}", f"{name}=", "a=b", f"{name}x={value}"):
        assert page.ask("GET", HEALTH, headers=page.credentials() | {"Cookie": f"{other}; {name}={value}"})[0] == 200, other


@pytest.mark.parametrize("half", ["cookie", "page key"])
def test_one_half_opens_no_route(served, page, half):
    headers = page.credentials()
    headers.pop("Ostler-Page-Key" if half == "cookie" else "Cookie")
    open_to_all = {("GET", "/api/docs"), ("POST", SESSION), ("DELETE", SESSION)}
    routes = [*documented(), *((method, path) for method in ("GET", "POST", "DELETE") for path in ("/mcp", "/sse", "/messages"))]
    assert open_to_all < set(documented())
    for method, path in routes:
        if (method, path) not in open_to_all:
            status, _, problem = page.ask(method, re.sub(r"\{\w+\}", "zzzzzzzz", path), headers=headers)
            assert status == 401, (method, path, status, problem)
    assert page.ask("GET", HEALTH)[0] == 200, "it was shut down"


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda headers: " ".join(*headers.items()))
def test_other_pages_of_the_browser_get_nothing_done(served, page, foreign):
    """Browsers send the cookie to every port of a host. The rest a page cannot send, but the test does."""
    headers = page.credentials() | foreign
    simple = {key: value for key, value in headers.items() if key != "Ostler-Page-Key"} | {"Content-Type": "text/plain"}
    start = json.dumps({"command": {"argv": {"program": "touch", "args": ["forged"]}}, "cwd": str(served.installation.work)})
    status, _, problem = page.ask("POST", "/api/v1/executions", start, headers | {"Content-Type": "application/json"})
    assert (status, problem["code"]) == (403, "security_error"), problem
    assert page.ask("POST", "/api/v1/executions", start, simple)[0] in (401, 403)
    assert page.ask("GET", "/api/v1/executions", headers=headers)[0] == 403
    # It can neither sign the browser in as somebody else, nor sign it out.
    for method, body in (("POST", json.dumps({"token": page.token})), ("DELETE", None)):
        status, answered, problem = page.ask(method, SESSION, body, simple)
        assert status == 403 and "Set-Cookie" not in answered, (method, problem)
    assert page.is_signed_in() and not (served.installation.work / "forged").exists()
    with pytest.raises(AssertionError, match=" 403 "):
        with_cookie = Page(served, cookies=page.cookies)
        with_cookie.own = lambda: page.own() | foreign
        with_cookie.websocket("/api/v1/interactions/events", page.page_key)


def test_a_token_in_the_header_is_judged_alone(served, page):
    """A browser with a cookie of ours may open another page that has a token of its own."""
    foreign = page.credentials() | {"Origin": "http://localhost:3000", "Authorization": f"Bearer {page.token}"}
    assert page.ask("GET", HEALTH, headers=foreign)[0] == 200
    assert page.ask("GET", HEALTH, headers=page.credentials() | {"Authorization": "Bearer ostler_wrong"})[0] == 401


def test_a_second_daemon_of_the_host_neither_knows_the_halves_nor_signs_out(served, page, binary):
    installation = Installation(binary)
    try:
        secret = made(installation, "first")
        # One browser: cookies of all ports in one jar.
        second = Page(HttpDaemon(installation), cookies=page.cookies)
        assert second.ask("GET", HEALTH, headers=second.own() | {"Ostler-Page-Key": page.page_key})[0] == 401
        ((name, value),) = page.cookies.items()
        renamed = {"Cookie": f"ostler_session_{second.host.split(':')[1]}={value}", "Ostler-Page-Key": page.page_key}
        assert second.ask("GET", HEALTH, headers=renamed)[0] == 401
        second.sign_in(token=secret)
        assert len(page.cookies) == 2 and second.is_signed_in() and page.is_signed_in()
        second.sign_out()
        assert page.is_signed_in() and not second.is_signed_in()
        second.http_daemon.end()
    finally:
        installation.close()


class OpenPage:
    """What a page opens: terminals and interactions by WebSockets, events by a stream, and a wait."""

    def __init__(self, page, stack):
        self.page = page
        body = {"command": {"argv": {"program": "cat", "args": []}}, "cwd": str(page.http_daemon.installation.work),
                "pty": {"cols": 80, "rows": 24}}
        status, _, started = page.ask("POST", "/api/v1/executions", body)
        assert status in (200, 201), started
        paths = [f"/api/v1/executions/{started['id']}/terminal", "/api/v1/interactions/events",
                 f"/api/v1/tasks/{started['id']}/events"]
        self.sockets = [stack.enter_context(page.websocket(path)) for path in paths]
        self.events = page.send("GET", "/api/v1/events", headers=page.credentials() | {"Accept": "text/event-stream"})
        assert self.events.status == 200
        stack.callback(self.events.connection.close)

    def ends_with(self, why):
        for socket in self.sockets:
            socket.to_the_end()
            assert socket.close_frame == (1008).to_bytes(2, "big") + why.encode()
        assert self.events.read().rstrip().splitlines()[-1] == f": {why}".encode()
        assert not self.page.is_signed_in()


@pytest.mark.parametrize("how", ["revoked", "expired", "signed out"])
def test_what_a_page_opened_ends_with_its_sign_in(served, how):
    page = Page(served)
    with contextlib.ExitStack() as stack:
        if how == "signed out":
            page.sign_in(code=link(served.installation)[1])
        else:
            page.sign_in(token=made(served.installation, how, *(["--expires", "4s"] if how == "expired" else [])))
        opened = OpenPage(page, stack)
        for socket in opened.sockets:
            assert "sec-websocket-protocol: ostler\r" in socket.head.lower() + "\r", socket.head
        if how == "revoked":
            served.installation.cli("token", "revoke", how)
        elif how == "signed out":
            page.sign_out()
        opened.ends_with("the token has expired" if how == "expired" else "the token was revoked")


def test_a_websocket_needs_both_halves_and_other_clients_need_no_subprotocol(served, page):
    path = "/api/v1/interactions/events"
    for protocols in ("ostler", f"ostler, ostler-page-key.{'A' * 21}", f"ostler, ostler-page-key.{page.page_key[1:]}"):
        with pytest.raises(AssertionError, match=" 401 "):
            page.websocket(path, protocols=protocols)
    with pytest.raises(AssertionError, match=" 401 "):
        Page(served).websocket(path, page.page_key)
    bearer = {"Host": page.host, "Authorization": f"Bearer {page.token}"}
    page.own = lambda: bearer
    with page.websocket(path, protocols="chat") as socket:
        assert "sec-websocket-protocol" not in socket.head.lower()


def test_a_daemon_that_is_killed_and_started_again_knows_its_pages(binary):
    installation = Installation(binary)
    try:
        first = HttpDaemon(installation)
        by_link, by_token = Page(first), Page(first)
        by_link.sign_in(code=printed_link(first)[1])
        by_token.sign_in(token=made(installation, "typed"))
        installation.kill_daemon()
        first.process.wait(timeout=20)
        second = HttpDaemon(installation, port=by_link.host.split(":")[1])
        assert second.base == first.base
        for page in (by_link, by_token):
            page.http_daemon = second
            assert page.is_signed_in()
        second.end()
    finally:
        installation.close()


def test_below_a_prefix_everything_works_below_it(binary):
    installation = Installation(binary)
    try:
        http_daemon = HttpDaemon(installation, "--url-prefix", "/deep/er")
        url, code = printed_link(http_daemon)
        assert url == f"{http_daemon.base}/deep/er/#code={code}"
        page = Page(http_daemon, prefix="/deep/er")
        page.sign_in(code=code)
        assert page.set_cookie["path"] == "/deep/er/" and page.is_signed_in()
        with page.websocket("/api/v1/interactions/events") as socket:
            socket.wait_message("up_to_date")
        page.sign_out()
        assert page.set_cookie["path"] == "/deep/er/" and not page.is_signed_in()
        assert Page(http_daemon).ask("POST", SESSION, {"code": code})[0] == 401
        http_daemon.end()
    finally:
        installation.close()


def test_where_no_token_is_needed_nobody_signs_in(http_daemon):
    page = Page(http_daemon)
    status, _, body = page.ask("GET", SESSION)
    assert status == 200 and body["token_needed"] is False and body["scopes"] == [] and "page_key" not in body
    status, headers, answer = page.ask("POST", SESSION, {"token": "ostler_any"})
    assert (status, answer) == (200, body) and "Set-Cookie" not in headers
    printed = http_daemon.wait_for(r"open\s+(\S+)$")
    assert printed[1] == f"{http_daemon.base}/"
    assert link(http_daemon.installation) == (f"{http_daemon.base}/", "")


def test_without_a_daemon_or_without_http_there_is_no_link(installation):
    refused = installation.cli("token", "link", check=False)
    assert refused.returncode != 0 and b"daemon" in refused.stderr, refused.stderr
    installation.cli("ps")
    refused = installation.cli("token", "link", check=False)
    assert refused.returncode != 0 and b"ostler serve" in refused.stderr, refused.stderr


def test_there_are_at_most_32_unused_links(binary):
    installation = Installation(binary)
    try:
        http_daemon = HttpDaemon(installation)
        codes = [printed_link(http_daemon)[1]]
        ask = lambda: installation.rest("POST", "/api/v1/web/codes")
        codes += [LINK_CODE.search(ask()["url"])[1] for _ in range(31)]
        with pytest.raises(ProblemError) as refused:
            ask()
        problem = refused.value.problem
        assert refused.value.status == 429 and "32 links" in problem["message"] and "wait" in problem["hint"], problem
        for code in codes[:2]:
            Page(http_daemon).sign_in(code=code)
        ask()
        http_daemon.end()
    finally:
        installation.close()


LINK_CODE = re.compile(r"#code=([\w-]+)$")


def test_after_ten_failures_an_address_waits(binary):
    installation = Installation(binary)
    try:
        secret = made(installation, "first")
        http_daemon = HttpDaemon(installation)
        page = Page(http_daemon)
        wrong = [{"token": "ostler_" + "A" * 43}, {"code": "A" * 22}, {"token": ""}, {"token": secret[:-1]}, {"code": secret}]
        for body in wrong * 2:
            # What is right in between is not counted.
            Page(http_daemon).sign_in(token=secret)
            status, headers, problem = page.ask("POST", SESSION, body)
            assert status == 401 and "Set-Cookie" not in headers, problem
        signed_in = Page(http_daemon, cookies=dict(page.cookies))
        for body in ({"token": secret[:-1]}, {"code": "A" * 22}):
            status, headers, problem = page.ask("POST", SESSION, body)
            assert (status, problem["code"]) == (429, "quota_exceeded"), problem
            assert 1 <= int(headers["Retry-After"]) <= 61 and "10 within 60 s" in problem["message"]
        # Nobody keeps those out who have a valid secret.
        Page(http_daemon).sign_in(token=secret)
        Page(http_daemon).sign_in(code=printed_link(http_daemon)[1])
        # Requests of those who are signed in go on, and so does everybody with a token.
        assert signed_in.ask("GET", HEALTH, headers={"Authorization": f"Bearer {secret}"})[0] == 200
        http_daemon.end()
    finally:
        installation.close()


def test_a_link_stays_valid_while_its_token_cannot_be_stored(unprivileged_installation):
    """As when the state directory cannot be written; a code that is lost would be a link that somebody waits for."""
    installation = unprivileged_installation
    made(installation, "first")
    http_daemon = HttpDaemon(installation)
    page, code = Page(http_daemon), printed_link(http_daemon)[1]
    installation.state.chmod(0o500)
    try:
        status, _, problem = page.ask("POST", SESSION, {"code": code})
        assert (status, problem["code"]) == (507, "storage_error"), problem
    finally:
        installation.state.chmod(0o700)
    page.sign_in(code=code)


def test_expired_tokens_of_browsers_leave_when_a_link_is_used(served):
    """Their expiry is in a month: the file says that one has passed."""
    installation = served.installation
    page = Page(served)
    page.sign_in(code=link(installation)[1])
    file = installation.state / "tokens.json"
    stored = json.loads(file.read_text())
    for token in stored:
        if token["name"].startswith("browser-"):
            token["expires"] = "2020-01-01T00:00:00Z"
    changed = file.with_suffix(".new")
    changed.write_text(json.dumps(stored))
    changed.chmod(0o600)
    changed.rename(file)
    assert not page.is_signed_in()
    status, _, problem = page.ask("POST", SESSION, {"token": f"ostler_{list(page.cookies.values())[0]}{page.page_key}"}, page.own())
    assert status == 401 and "expired" in problem["message"], problem
    Page(served).sign_in(code=link(installation)[1])
    browsers = [token for name, token in tokens(installation).items() if name.startswith("browser-")]
    assert len(browsers) == 1 and "first" in tokens(installation)


@pytest.mark.parametrize("path", ["/api/v1/%3Cscript%3Ealert(1)%3C/script%3E", "/%3Cimg%20src=x%20onerror=alert(1)%3E", "/api/v1/executions/'\"-b-"])
def test_a_refusal_is_no_page(served, page, path):
    """A browser shows it as text: it is JSON, may not be taken for anything else, and may load nothing nor be framed."""
    for headers in (page.credentials(), page.own(), {"Authorization": f"Bearer {page.token}"}, {"Host": "<script>"}):
        status, answered, _ = page.ask("GET", path, headers=headers)
        assert status >= 400 and answered["Content-Type"] == "application/problem+json", (status, answered.items())
        assert answered["X-Content-Type-Options"] == "nosniff"
        assert answered["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
