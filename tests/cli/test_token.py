"""`rota token`: made, listed and taken back."""

import json


def test_tokens(directory, run, monkeypatch):
    """A token is made, listed by its name and taken back; the file holds no token."""
    monkeypatch.delenv("ROTA_ADDRESS", raising=False)
    monkeypatch.setenv("ROTA_DIR", str(directory))
    code, out, errors = run("token", "add", "laptop")
    assert code == 0
    assert "not shown again" in errors
    assert run("token", "list") == (0, "laptop\n", "")
    assert not any(out.strip() in path.read_text() for path in directory.iterdir())
    assert run("token", "add", "laptop")[0] == 2
    for at in (str(directory), f"unix:{directory}/rota.sock"):
        assert json.loads(run("token", "list", "--at", at, "--json")[1]) == {"names": ["laptop"]}
    assert run("token", "remove", "laptop") == (0, "", "removed: laptop\n")
    assert run("token", "remove", "laptop")[0] == 2
    for at in (str(directory / "none"), "http://127.0.0.1:1"):
        assert run("token", "list", "--at", at)[0] == 2
