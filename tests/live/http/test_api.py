"""The HTTP interface on real sockets: who is let in, what is refused and how, and whether /openapi.json tells the truth."""

import asyncio
import contextlib
import json
import os
import socket
import stat
import time

import httpx
import jsonschema
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import positive_data_acceptance

from live.serving import LIMIT, serving
from rota.errors import BadSpec
from rota.live.http.api import make_app
from rota.live.http.server import serve_http
from rota.live.http.tokens import Tokens
from rota.live.messages import Changed, Job, Status, Submitted
from stub_scheduler import StubScheduler

JOB = {"argv": ["true"], "type": "small"}
HELD = {**JOB, "hold": True}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service on a Unix socket and two TCP ports."""
    directory = tmp_path_factory.mktemp("rota")
    with serving(directory) as addresses:
        yield addresses


@pytest.fixture(scope="module")
def unix(served):
    """An HTTP client on the Unix socket."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(served.socket)), base_url="http://rota", timeout=20) as http:
        yield http


@pytest.fixture(scope="module")
def tcp(served):
    """An HTTP client on the TCP port without tokens."""
    with httpx.Client(base_url=served.tcp, timeout=20, trust_env=False) as http:
        yield http


@pytest.fixture(scope="module")
def guarded(served):
    """An HTTP client, without its token, on the TCP port that needs one."""
    with httpx.Client(base_url=served.guarded, timeout=20, trust_env=False) as http:
        yield http


def refused(answer, status, words=""):
    """The answer is an error in the one shape that all have, and says this."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["error"], answer.text
    assert words in answer.json()["error"]
    assert "Traceback" not in answer.text
    return True


def raw(address, data):
    """What comes back for these bytes on a TCP connection."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(data)
        pieces = []
        try:
            while piece := connection.recv(65536):
                pieces.append(piece)
                if b"\r\n\r\n" in b"".join(pieces):
                    break
        except ConnectionResetError:
            pass
        return b"".join(pieces)


# -------------------------------------------------------------------------------------------------------------- what it does


def test_the_life_of_a_job(unix):
    """Submit, show, hold, release, wait, output, explain, list: each address does what its name says."""
    made = unix.post("/jobs", json={"argv": ["echo", "hello"], "type": "small", "name": "greeting", "hold": True})
    assert made.status_code == 201
    submitted = Submitted.model_validate_json(made.content)
    (id,) = submitted.ids
    job = Job.model_validate_json(unix.get(f"/jobs/{id}").content)
    assert (job.state, job.name, job.argv) == ("held", "greeting", ["echo", "hello"])
    assert unix.get(f"/jobs/{id}/explain").json()["state"] == "held"
    assert unix.get(f"/jobs/{id}/wait?timeout_s=0").json()["state"] == "held"
    assert unix.get(f"/jobs/{id}/log").headers["rota-ended"] == "false"
    unix.post(f"/jobs/{id}/release").raise_for_status()
    assert unix.get(f"/jobs/{id}/wait?timeout_s=20").json()["state"] == "done"
    output = unix.get(f"/jobs/{id}/log")
    assert (output.content, output.headers["rota-next-offset"], output.headers["rota-ended"]) == (b"hello\n", "6", "true")
    assert unix.get(f"/jobs/{id}/log?offset=2&limit=3").content == b"llo"
    assert [job["id"] for job in unix.get("/jobs?name=greeting&state=done&state=failed").json()] == [id]
    assert refused(unix.post(f"/jobs/{id}/cancel"), 409)
    assert refused(unix.post(f"/jobs/{id}/hold"), 409)


def test_pages_and_filters_of_the_list(unix):
    """A list is newest first; `before` gives the next page, and filters hold together."""
    ids = unix.post("/jobs", json={**HELD, "array": [5, 9], "name": "pages"}).json()["ids"]
    first = unix.get("/jobs", params={"name": "pages", "limit": 3}).json()
    second = unix.get("/jobs", params={"name": "pages", "limit": 3, "before": first[-1]["id"]}).json()
    assert [job["id"] for job in first + second] == ids[::-1]
    assert [job["index"] for job in first + second] == [9, 8, 7, 6, 5]
    assert unix.get("/jobs?name=pages&type=large").json() == []
    assert unix.get("/jobs?name=pages&state=running").json() == []


def test_lists_are_brief_and_stream(unix):
    """A list of jobs with huge command lines stays small and comes in parts; each job alone has all of it."""
    argv = ["true", *["x" * 1000] * 150]
    ids = [unix.post("/jobs", json={"argv": argv, "type": "small", "hold": True, "name": "huge"}).json()["ids"][0] for _ in range(120)]
    with unix.stream("GET", "/jobs", params={"name": "huge", "limit": 110}) as answer:
        assert answer.headers["Transfer-Encoding"] == "chunked"  # nobody had to know its length, so nobody had to have all of it
        listed = json.loads(b"".join(answer.iter_raw()))
    assert [job["id"] for job in listed] == ids[:9:-1]
    assert max(len(json.dumps(job)) for job in listed) < 3000
    assert all(job["argv"][0] == "true" and job["argv"][-1].endswith("…") and job["cut"] == ["argv"] for job in listed)
    assert sum(map(len, listed[0]["argv"])) <= 1001
    for id in (ids[0], ids[-1]):
        job = unix.get(f"/jobs/{id}").json()
        assert (job["argv"], job["cut"]) == (argv, [])
    changed = unix.post("/jobs/change", json={"action": "cancel", "ids": ids}).json()
    assert [job["id"] for job in changed["jobs"]] == ids
    assert {tuple(job["cut"]) for job in changed["jobs"]} == {("argv",)}
    assert unix.get("/jobs", params={"name": "nobody"}).json() == []
    for limit in (1, 9, 10, 11, 20, 21):  # around the pages in which they are read
        assert [job["id"] for job in unix.get("/jobs", params={"name": "huge", "limit": limit}).json()] == ids[::-1][:limit]


def test_others_are_served_while_a_list_is_sent(served, unix):
    """A long list that nobody reads to its end keeps no other request waiting."""
    unix.post("/jobs", json={"argv": ["true", "x" * 900], "type": "small", "hold": True, "name": "long", "array": [1, 3000]})
    other = httpx.Client(transport=httpx.HTTPTransport(uds=str(served.socket)), base_url="http://rota", timeout=20)
    with other, other.stream("GET", "/jobs", params={"name": "long", "limit": 3000}) as answer:
        parts = answer.iter_raw()
        assert next(parts).startswith(b'[{"id":')
        assert unix.get("/health").json()["ok"]
        rest = b"".join(parts)
    assert len(rest) > 3000 * 900
    ids = [job["id"] for job in unix.get("/jobs", params={"name": "long", "limit": 3000}).json()]
    assert len(ids) == 3000
    unix.post("/jobs/change", json={"action": "cancel", "ids": ids})


def test_odd_offsets_into_the_output(unix):
    """An offset far behind the end of the output, as far as it may be, gives nothing, and no error."""
    id = unix.post("/jobs", json={"argv": ["/bin/echo", "one"], "type": "small"}).json()["ids"][0]
    unix.get(f"/jobs/{id}/wait", params={"timeout_s": 10})
    for offset, data in ((0, b"one\n"), (3, b"\n"), (4, b""), (2**31, b""), (2**45, b""), (2**62, b"")):
        answer = unix.get(f"/jobs/{id}/log", params={"offset": offset})
        assert (answer.status_code, answer.content) == (200, data)
        assert int(answer.headers["Rota-Next-Offset"]) == offset + len(data)


@pytest.mark.parametrize("cwd", ["/" + "x" * 5000, "/x" * 2048, "/" + "ä" * 128, "/" + "x" * 256], ids=len)
def test_a_working_directory_that_cannot_be(unix, cwd):
    """A path that is longer than Linux allows is refused as a wrong value, and no job is taken."""
    before = unix.get("/jobs", params={"limit": 1}).json()
    refused(unix.post("/jobs", json={**JOB, "cwd": cwd}), 422, "cwd must be a path of at most 4095 bytes, with at most 255 in each name")
    assert unix.get("/jobs", params={"limit": 1}).json() == before


def test_status_plans_events_metrics_health(unix):
    """The views have the media types they promise."""
    assert Status.model_validate_json(unix.get("/status").content).preemption == "none"
    plans = unix.get("/plans").json()
    used = next(plan["number"] for plan in plans if plan["in_use"])
    assert unix.post(f"/plans/{used}/use").json()["number"] == used
    assert refused(unix.post("/plans/99999/use"), 404)
    assert [unix.post(f"/plans/pin?pinned={word}").json()["pinned"] for word in ("true", "false")] == [True, False]
    unix.post("/jobs", json=HELD).raise_for_status()
    events = unix.get("/events?limit=1")
    assert events.headers["content-type"] == "application/x-ndjson"
    assert isinstance(json.loads(events.text), dict)
    assert unix.get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")
    assert unix.get("/health").json()["ok"] is True


def test_a_long_poll_ends_when_the_job_does(unix):
    """Waiting answers long before its timeout, as soon as the job has ended."""
    id = unix.post("/jobs", json={**JOB, "argv": ["sleep", "0.3"]}).json()["ids"][0]
    begin = time.monotonic()
    assert unix.get(f"/jobs/{id}/wait?timeout_s=15").json()["state"] == "done"
    assert time.monotonic() - begin < 10


def test_many_jobs_changed_together(unix):
    """Two thousand held jobs are released, held again and cancelled, each in one request; what refuses is told."""
    ids = unix.post("/jobs", json={**HELD, "argv": ["sleep", "20"], "array": [1, 2000]}).json()["ids"]
    for action, state in [("release", "waiting"), ("hold", "held"), ("cancel", "cancelled")]:
        answer = unix.post("/jobs/change", json={"action": action, "ids": ids, "now": action == "cancel"})
        changed = Changed.model_validate_json(answer.content)
        running = 0 if action == "release" else 2
        assert sum(job.state == state for job in changed.jobs) >= 2000 - 2
        assert len(changed.refused) == (running if action == "hold" else 0)
    answer = unix.post("/jobs/change", json={"action": "release", "ids": [ids[0], 2**62]})
    assert answer.status_code == 200
    assert answer.json()["jobs"] == []
    assert answer.json()["refused"][1] == f"there is no job {2**62}"


# ------------------------------------------------------------------------------------------------------------ what it refuses


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"action": "cancel", "ids": []}, "ids: must have at least 1 entries"),
        ({"action": "cancel", "ids": [0]}, "ids.0: must be at least 1"),
        ({"action": "cancel"}, "ids: is missing"),
        ({"action": "end", "ids": [1]}, "action: must be 'cancel', 'hold' or 'release'"),
        ({"action": "hold", "ids": [1], "all": True}, "all: is not a known key"),
        ({"action": "hold", "ids": "1"}, "ids: must be a list"),
    ],
)
def test_a_wrong_change_is_refused(tcp, body, words):
    """Nothing is changed unless the whole request is right."""
    content = json.dumps(body, separators=(",", ":"))
    assert refused(tcp.post("/jobs/change", content=content, headers={"Content-Type": "application/json"}), 422, words)


BAD_VALUES = [
    ("argv", [], "argv: must have at least 1 entries"),
    ("argv", "true", "argv: must be a list"),
    ("argv", [1], "argv.0: must be a string"),
    ("argv", [""], "the program has no name"),
    ("argv", ["a\x00b"], "argv.0: holds a character"),
    ("argv", ["x" * 131_073], "argv.0: must have at most 131072 characters"),
    ("type", None, "either type or demand"),
    ("type", 3, "type: must be a string"),
    ("type", "nonsense", "type: "),
    ("demand", {"cores": 1}, "either type or demand"),
    ("name", "a\nb", "name: holds a character"),
    ("cwd", "here", "absolute"),
    ("env", {"A=B": "c"}, "'='"),
    ("env", {"A": "b\x00"}, "env.A: holds a character"),
    ("env", ["A"], "env: must be a JSON object"),
    ("array", [1], "array"),
    ("array", [1, 2**70], "array"),
    ("array", [0, 100_000], "at most 100,000 jobs"),
    ("after", [2**63], "after.0: must be at most"),
    ("after", [10**400], "after.0: must be"),
    ("after", [0], "after.0: must be at least 1"),
    ("after", ["1"], "after.0: must be a whole number"),
    ("after", [1.5], "after.0: must be a whole number"),
    ("hold", "yes", "hold: must be true or false"),
    ("estimate_s", -1, "estimate_s: must be greater than 0"),
    ("surprise", 1, "surprise: is not a known key"),
]


@pytest.mark.parametrize(("field", "value", "words"), BAD_VALUES)
def test_a_wrong_value_is_named(unix, field, value, words):
    """A wrong type, an unknown field, NUL or a huge number gives 422, saying where and which rule."""
    assert refused(unix.post("/jobs", json={**JOB, field: value}), 422, words)


NOT_JSON = [b"", b"{", b"\xff\xfe{}", b'{"argv": ["\xff"]}', b'{"argv": ["\\ud800"]}', b"\x00", b"[" * 50_000, b"{'a': 1}", b"9" * 5000]


@pytest.mark.parametrize("body", NOT_JSON)
def test_what_is_no_json_gives_400(unix, body):
    """Broken JSON, bad UTF-8, lone surrogates, NUL bytes, deep nesting and numbers of 5000 digits give 400."""
    assert refused(unix.post("/jobs", content=body, headers={"Content-Type": "application/json"}), 400, "not valid JSON")


@pytest.mark.parametrize("body", [b"null", b"1", b"[]", b'"text"', b"{}", b"NaN"])
def test_json_that_is_no_job_gives_422(unix, body):
    """JSON of another kind is refused in the same shape."""
    assert refused(unix.post("/jobs", content=body, headers={"Content-Type": "application/json"}), 422)


def test_many_problems_are_cut_short(unix):
    """Ten thousand wrong values give an answer of a few lines."""
    answer = unix.post("/jobs", json={**JOB, "after": [0] * 10_000})
    assert refused(answer, 422, "more problems")
    assert len(answer.text) < 5000


@given(
    body=st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_any_body_is_answered(unix, body):
    """Whatever is sent as a job, valid or not, is answered with 201 or a clean 4xx."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = unix.post("/jobs", content=data, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201 or refused(answer, 400 if answer.status_code == 400 else 422)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None])
def test_a_body_must_say_that_it_is_json(unix, tcp, kind):
    """The kinds that a web page can send without asking are refused on every listener."""
    for http in (unix, tcp):
        answer = http.post("/jobs", content=json.dumps(JOB), headers={"Content-Type": kind} if kind else {})
        assert refused(answer, 415, "application/json")


def endless(size):
    """A body without a length, in pieces."""
    for _ in range(size // 10_000):
        yield b" " * 10_000


@pytest.mark.parametrize("size", [LIMIT + 10_000, 20 * LIMIT])
def test_a_body_that_is_too_large_gives_413(unix, tcp, size):
    """With or without a declared length, a body above the limit gets 413, and the next request is served."""
    kind = {"Content-Type": "application/json"}
    for http in (unix, tcp):
        assert refused(http.post("/jobs", content=b" " * size, headers=kind), 413, "200,000 bytes")
        assert refused(http.post("/jobs", content=endless(size), headers=kind), 413, "200,000 bytes")
        assert http.get("/health").status_code == 200


def test_a_body_that_nobody_reads_is_harmless(unix, guarded):
    """A large body where none belongs, or from one who is not let in, is dropped, and the connection goes on."""
    for size in (1000, 5_000_000):
        assert refused(unix.post(f"/jobs/{2**62}/cancel", content=b" " * size), 404)
        assert refused(guarded.post("/jobs", content=b" " * size), 401)
        assert unix.get("/health").status_code == 200


def test_a_false_length_is_not_waited_for(served):
    """A request that declares a huge body is refused before any of it has come."""
    head = f"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {10**15}\r\n\r\n"
    assert raw(served.tcp, head.encode()).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("data", [b"\x00\x01\x02\r\n\r\n", b"GET /jobs/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET\r\n\r\n"])
def test_what_is_no_http_gives_400(served, data):
    """Bytes that are no HTTP request get 400 and a closed connection."""
    assert raw(served.tcp, data).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "id",
    ["0", "-1", "x", "1e3", "9" * 30, "9" * 5000, "%00", "%ff", "1%0a", "1_0", "1.0", "+1", "٣x", "null", "1;drop", "..%5c", str(2**63)],
)
def test_odd_numbers_of_jobs(unix, id):
    """What cannot be the number of a job gives 422 or 404 at every address that takes one."""
    for method, rest in [("GET", ""), ("POST", "/cancel"), ("POST", "/hold"), ("POST", "/release"), ("GET", "/log"), ("GET", "/explain")]:
        answer = unix.request(method, f"/jobs/{id}{rest}")
        assert refused(answer, answer.status_code)
        assert answer.status_code in (404, 422)
    answer = unix.post(f"/plans/{id}/use")
    assert refused(answer, answer.status_code)
    assert answer.status_code in (404, 422)


def test_a_job_that_is_not_there(unix):
    """An unknown number gives 404 at every address, with the number in the text."""
    for method, rest in [("GET", ""), ("POST", "/cancel"), ("POST", "/hold"), ("GET", "/wait"), ("GET", "/log"), ("GET", "/explain")]:
        assert refused(unix.request(method, f"/jobs/{2**62}{rest}"), 404, str(2**62))


@pytest.mark.parametrize(
    "query",
    [
        "/jobs?stat=done",
        "/jobs?state=finished",
        "/jobs?limit=0",
        "/jobs?limit=x",
        "/jobs?before=9999999999999999999",
        "/jobs?name=%00",
        "/events?after=-1",
        "/events?limit=99999",
        "/jobs/1/wait?timeout_s=nan",
        "/jobs/1/wait?timeout_s=inf",
        "/jobs/1/log?offset=-1",
    ],
)
def test_wrong_filters(unix, query):
    """An unknown or impossible filter is refused rather than ignored."""
    assert refused(unix.get(query), 422, "query.")


def test_unknown_addresses_and_methods(unix):
    """404 and 405 have the same shape; 405 names all methods that there are."""
    for path in ("/", "/job", "/jobs/", "/docs", "/redoc", "/jobs/1/2/3", "/%2e%2e/etc/passwd"):
        assert refused(unix.get(path), 404, "openapi.json")
    answer = unix.delete("/jobs")
    assert refused(answer, 405, "GET, POST")
    assert answer.headers["allow"] == "GET, POST"
    assert unix.put("/jobs/1/cancel").headers["allow"] == "POST"


def test_a_body_that_breaks_off_is_no_error_of_ours(served, caplog):
    """A body that ends too soon, or turns out to be no HTTP, gives 400 or nothing; nothing is logged as unexpected."""
    head = b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    host, port = served.tcp.removeprefix("http://").split(":")
    for rest in (b'Content-Length: 99\r\n\r\n{"argv"', b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"arg\r\nnonsense\r\n'):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(head + rest)
            time.sleep(0.05)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := connection.recv(65536):
                    answer += piece
        assert answer.startswith(b"HTTP/1.1 400") or not answer
    assert not [record for record in caplog.records if record.exc_info]


def test_an_unexpected_error_shows_nothing(tmp_path, caplog):
    """An error of the service itself gives a plain 500; the log has the traceback, the answer has not."""

    class Broken(StubScheduler):
        def status(self):
            raise ZeroDivisionError("secret")

    async def ask():
        async with serve_http(make_app(Broken(), trusted=True), unix=tmp_path / "s"):
            transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "s"))
            async with httpx.AsyncClient(transport=transport, base_url="http://rota") as http:
                return await http.get("/status"), await http.get("/health")

    broken, healthy = asyncio.run(ask())
    assert refused(broken, 500, "internal error, see the scheduler's log")
    assert "secret" not in broken.text
    assert healthy.status_code == 200
    assert "ZeroDivisionError: secret" in caplog.text
    assert "GET /status" in caplog.text


# ------------------------------------------------------------------------------------------------------------- who is let in


def test_no_token_or_a_wrong_one(served, guarded):
    """Every address, known or not, wants the token: also the description of the interface."""
    for headers in ({}, {"Authorization": "Bearer rota_x"}, {"Authorization": f"Basic {served.token}"}, {"Authorization": served.token}):
        for path in ("/status", "/jobs", "/openapi.json", "/health", "/metrics", "/nothing"):
            answer = guarded.get(path, headers=headers)
            assert refused(answer, 401, "token")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert refused(guarded.post("/jobs", json=JOB, headers=headers), 401)
    assert guarded.get("/status", headers={b"Authorization": b"Bearer \xff\xfe"}).status_code == 401
    assert guarded.get("/status", headers={"Authorization": f"bearer  {served.token}"}).status_code == 200


def test_with_a_token_any_host_and_origin_will_do(served, guarded):
    """A token is proof enough: a web page has none."""
    headers = {"Authorization": f"Bearer {served.token}", "Host": "rota.example", "Origin": "http://rota.example"}
    assert guarded.get("/status", headers=headers).status_code == 200


def test_a_removed_token_is_worthless_at_once(served, guarded):
    """The running scheduler notices new and removed tokens."""
    tokens = Tokens(served.directory / "tokens.json")
    token = tokens.add("for a moment")
    headers = {"Authorization": f"Bearer {token}"}
    assert guarded.get("/health", headers=headers).status_code == 200
    tokens.remove("for a moment")
    assert refused(guarded.get("/health", headers=headers), 401)


@pytest.mark.parametrize(
    "host",
    [
        "rota.example",
        "localhost.example",
        "127.0.0.1.example:80",
        "10.0.0.1",
        "[::2]:80",
        "0.0.0.0",
        "",
        "a:b:c",
        "[::1",
        "[::1]x",
        "localhost:x",
    ],
)
def test_without_tokens_a_foreign_host_is_refused(tcp, host):
    """A name that was made to point at this machine (DNS rebinding) is not served."""
    for method, path in [("GET", "/status"), ("POST", "/jobs"), ("GET", "/openapi.json")]:
        assert refused(tcp.request(method, path, headers={"Host": host}, json=JOB if method == "POST" else None), 403, "Host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:8000"])
def test_without_tokens_this_machine_is_served(tcp, host):
    """The names and addresses of the loopback are."""
    assert tcp.get("/status", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("headers", [{"Origin": "http://127.0.0.1"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}])
def test_without_tokens_web_pages_are_refused(tcp, unix, headers):
    """What a browser adds to the requests of web pages keeps them out; no job is made."""
    count = len(unix.get("/jobs?limit=10000").json())
    assert refused(tcp.post("/jobs", json=JOB, headers=headers), 403, "web pages")
    assert refused(tcp.options("/jobs", headers={**headers, "Access-Control-Request-Method": "POST"}), 403)
    assert len(unix.get("/jobs?limit=10000").json()) == count


def test_without_tokens_other_machines_are_refused():
    """Should the network reach a port that never had a token, only this machine is served, and nobody can pose as it."""

    async def ask(client):
        transport = httpx.ASGITransport(make_app(StubScheduler()), client=(client, 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            return await http.get("/status", headers={"X-Forwarded-For": "127.0.0.1"})

    assert refused(asyncio.run(ask("192.0.2.7")), 401, "only this machine")
    assert asyncio.run(ask("127.0.0.1")).status_code == 200


def test_a_port_for_others_needs_a_token(tmp_path):
    """Listening where others can reach it is refused as long as there is no token."""

    async def listen(tokens):
        async with serve_http(make_app(StubScheduler(), tokens=tokens), tcp=("0.0.0.0", 0)):
            return True

    tokens = Tokens(tmp_path / "tokens.json")
    for none in (None, tokens):
        with pytest.raises(BadSpec, match="needs a token"):
            asyncio.run(listen(none))


def test_the_last_token_leaves_a_closed_port(tmp_path):
    """Once there was a token, one is needed: without any left nobody is let in, from this machine or another, until there is a new one."""
    tokens = Tokens(tmp_path / "tokens.json")
    app = make_app(StubScheduler(), tokens=tokens)

    async def ask(token="", client="127.0.0.1"):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app, client=(client, 1)), base_url="http://localhost") as http:
            return await http.get("/status", headers=headers)

    assert asyncio.run(ask()).status_code == 200
    old = tokens.add("laptop")
    tokens.remove("laptop")
    for client in ("127.0.0.1", "192.0.2.7"):
        assert refused(asyncio.run(ask(client=client)), 401)
        assert refused(asyncio.run(ask(old, client)), 401)
    assert asyncio.run(ask(tokens.add("new"), "192.0.2.7")).status_code == 200


def test_a_damaged_file_of_tokens_keeps_everybody_out(tmp_path):
    """It is not the same as no tokens."""
    tokens = Tokens(tmp_path / "tokens.json")
    token = tokens.add("laptop")

    async def ask():
        transport = httpx.ASGITransport(make_app(StubScheduler(), tokens=tokens), client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            return await http.get("/status", headers={"Authorization": f"Bearer {token}"})

    assert asyncio.run(ask()).status_code == 200
    tokens.path.write_text("{")
    assert refused(asyncio.run(ask()), 500)


def test_only_the_owner_may_open_the_socket(served):
    """The socket has mode 0600."""
    mode = served.socket.stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert mode & 0o777 == 0o600


def test_the_socket_is_never_wider(tmp_path, monkeypatch):
    """Also right after bind and under a wide umask; and the umask is as before."""
    modes, bind = [], socket.socket.bind

    def watched(self, address):
        bind(self, address)
        modes.append(os.stat(address).st_mode & 0o777)

    monkeypatch.setattr(socket.socket, "bind", watched)

    async def listen():
        async with serve_http(make_app(StubScheduler(), trusted=True), unix=tmp_path / "s"):
            modes.append((tmp_path / "s").stat().st_mode & 0o777)

    before = os.umask(0)
    try:
        asyncio.run(listen())
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]
    assert not (tmp_path / "s").exists()


def test_another_user_cannot_connect(served):
    """A process of another user gets "permission denied", though it can walk to the socket. Needs root to become another user."""
    if os.geteuid() != 0:
        assert served.socket.stat().st_mode & 0o077 == 0
        assert served.socket.stat().st_uid == os.geteuid()
        return
    here = os.open(served.directory, os.O_RDONLY | os.O_DIRECTORY)
    mode = stat.S_IMODE(served.directory.stat().st_mode)
    served.directory.chmod(0o755)  # so that it is the socket which refuses, and not only the directory
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.fchdir(here)
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            socket.socket(socket.AF_UNIX).connect("rota.sock")
        except PermissionError:
            code = 42
        finally:
            os._exit(code)
    os.close(here)
    _, status = os.waitpid(child, 0)
    served.directory.chmod(mode)
    assert os.waitstatus_to_exitcode(status) == 42


# ------------------------------------------------------------------------------------------------------------ start and stop


def test_a_stale_socket_is_replaced_and_another_file_is_not(tmp_path):
    """The socket of a dead scheduler makes way; a file that is no socket stays, with an error."""

    async def listen(path):
        async with serve_http(make_app(StubScheduler(), trusted=True), unix=path) as address:
            assert address == f"unix:{path}"
            transport = httpx.AsyncHTTPTransport(uds=str(path))
            async with httpx.AsyncClient(transport=transport, base_url="http://rota") as http:
                return (await http.get("/health")).status_code

    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "stale"))
    assert asyncio.run(listen(tmp_path / "stale")) == 200
    (tmp_path / "file").write_text("precious")
    with pytest.raises(BadSpec, match="not a socket"):
        asyncio.run(listen(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "precious"


def test_stopping_ends_long_polls_at_once(tmp_path):
    """A scheduler that stops does not wait for those who wait: they are told, within a second."""

    async def run():
        service = StubScheduler()
        transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "s"))
        async with httpx.AsyncClient(transport=transport, base_url="http://rota", timeout=20) as http:
            async with serve_http(make_app(service, trusted=True), unix=tmp_path / "s"):
                await http.post("/jobs", json=HELD)
                polls = [asyncio.ensure_future(http.get("/jobs/1/wait?timeout_s=200")) for _ in range(3)]
                await asyncio.sleep(0.3)
                begin = time.monotonic()
            return [await poll for poll in polls], time.monotonic() - begin

    answers, seconds = asyncio.run(run())
    assert all(refused(answer, 503, "stopping") for answer in answers)
    assert seconds < 1.5


def test_a_caller_that_leaves_is_not_waited_for(tmp_path):
    """When the one who polls hangs up, the service stops waiting for him."""

    async def run():
        service = StubScheduler()
        left = asyncio.Event()

        async def wait(id, timeout_s):
            try:
                await asyncio.sleep(timeout_s)
            finally:
                left.set()

        service.wait = wait
        async with serve_http(make_app(service, trusted=True), unix=tmp_path / "s"):
            _, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
            writer.write(b"GET /jobs/1/wait?timeout_s=200 HTTP/1.1\r\nHost: rota\r\n\r\n")
            await asyncio.sleep(0.2)
            writer.close()
            await writer.wait_closed()
            await asyncio.wait_for(left.wait(), 5)

    asyncio.run(run())


# -------------------------------------------------------------------------------------------------------------- /openapi.json


def harmless(case):
    """The same request, but a job it makes runs `true`, no poll waits and no job is changed: all else is as drawn."""
    if isinstance(case.body, dict) and isinstance(case.body.get("argv"), list) and case.body["argv"]:
        first, *rest = case.body["argv"]
        case.body["argv"] = ["true" if isinstance(first, str) and first else first, *rest]
    if isinstance(case.query, dict) and isinstance(case.query.get("timeout_s"), (int, float)) and case.query["timeout_s"] > 0:
        case.query["timeout_s"] = 0
    if isinstance(case.body, dict) and isinstance(case.body.get("ids"), list):
        case.body["ids"] = [_of_nobody(id) for id in case.body["ids"]]
    return case


def _of_nobody(id):
    """A number that no job has, so that none is started or ended by chance. And written without a point: in JSON Schema, 7.0 is whole."""
    if isinstance(id, bool) or not isinstance(id, (int, float)) or not 0 < id < 2**61 or id != int(id):
        return id
    return int(id) + 2**61


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_the_description_is_true(served, mode):
    """Drawn requests, good and bad, at every address: no 500, only described statuses, types, headers and shapes, 401 without token."""
    headers = {"Authorization": f"Bearer {served.token}"}
    described = schemathesis.openapi.from_url(f"{served.guarded}/openapi.json", headers=headers)
    asked, session = set(), requests.Session()
    for operation in (found.ok() for found in described.get_all_operations()):
        if mode is schemathesis.GenerationMode.NEGATIVE and not (operation.body or operation.query or operation.path_parameters):
            continue  # there is nothing that could be wrong

        @settings(max_examples=10, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case):
            # That a valid job is taken is not asked: rules between fields, the names of types and the numbers of jobs are in no schema.
            unsaid = [positive_data_acceptance] if case.operation.label == "POST /jobs" else []
            answer = harmless(case).call_and_validate(headers=headers, session=session, excluded_checks=unsaid)
            asked.add((case.operation.label, answer.status_code))

        ask()
    session.close()
    good = mode is schemathesis.GenerationMode.POSITIVE
    assert len({label for label, _ in asked}) == (17 if good else 13)
    assert ("GET /jobs", 200 if good else 422) in asked
    assert ("POST /jobs/change", 200 if good else 422) in asked


def test_the_description_is_complete(unix, tcp, served):
    """Every address of the interface is described with its errors; only the TCP port speaks of tokens."""
    mine, theirs = unix.get("/openapi.json").json(), tcp.get("/openapi.json").json()
    assert len(mine["paths"]) == 16
    assert sum(map(len, mine["paths"].values())) == 17
    for path in mine["paths"].values():
        for operation in path.values():
            assert {"400", "422", "500"} <= set(operation["responses"])
            assert operation["summary"]
            assert operation["description"]
    for message in ("JobRequest", "ChangeRequest"):
        jsonschema.Draft202012Validator.check_schema(mine["components"]["schemas"][message])
    assert "security" not in mine
    assert theirs["security"] == [{"token": []}]
