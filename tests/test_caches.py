"""Stale caches of compiled functions."""

import os

from caches import remove_stale_caches


def test_only_stale_caches_go(tmp_path):
    """A cache older than a source file with compiled functions goes, whichever that is; a newer one stays, other files do not count."""
    times = {"kernel.py": 10, "plain.py": 30, "room/a.nbi": 5, "room/a.1.nbc": 9, "room/b.nbi": 11, "room/note.txt": 1}
    (tmp_path / "room").mkdir()
    for name, when in times.items():
        file = tmp_path / name
        file.write_text("@kernel\ndef f(): ..." if name == "kernel.py" else "", encoding="utf-8")
        os.utime(file, (when, when))
    remove_stale_caches(tmp_path)
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.*") if file.is_file()}
    assert left == {"kernel.py", "plain.py", "room/b.nbi", "room/note.txt"}
