"""The state directory is this user's own, all the way; no link in it is followed."""

from __future__ import annotations

import os

import pytest

from live_service import finished, open_service, plan_of, play, run, slots, until
from rota.cli import main
from rota.live.errors import Refused
from rota.live.storage.private_files import check_way, make_private, read_plain

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
NOBODY = 65534


def test_a_new_directory_is_private(tmp_path):
    """It is made, with the folders on the way, and only its owner may enter; one that is there is closed."""
    make_private(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    (tmp_path / "open").mkdir(mode=0o755)
    make_private(tmp_path / "open")
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o700
    make_private(tmp_path / "open")
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="is not a directory"):
        make_private(tmp_path / "file")


@root
def test_a_directory_of_somebody_else(tmp_path, capsys):
    """A state directory that another user owns is refused, by the command, too, and nothing is written into it."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    os.chown(state, NOBODY, NOBODY)
    plan = tmp_path / "server.toml"
    plan.write_text("[server]\nslots = 1\n[jobs.one]\ndemand = { slots = 1 }\narrival_rate = 1\nmean_size = 0.1\n")
    assert main(["serve", str(plan), "--policy", "fcfs", "--directory", str(state)]) == 1
    assert f"{state} belongs to user nobody: give a directory of your own (--directory)" in capsys.readouterr().err
    assert os.listdir(state) == []


@root
@pytest.mark.parametrize("name", ["rota.db", "events.jsonl", "output", "run"])
def test_a_part_of_somebody_else(tmp_path, name):
    """So is one in which another user owns a part."""
    path = tmp_path / "state" / name
    path.parent.mkdir(mode=0o700)
    path.mkdir() if name in ("output", "run") else path.touch()
    make_private(tmp_path / "state")
    os.chown(path, NOBODY, NOBODY)
    with pytest.raises(Refused, match=f"{path} belongs to user nobody"):
        make_private(tmp_path / "state")


@root
def test_a_way_through_the_folder_of_somebody_else(tmp_path):
    """Whoever owns a folder on the way could put another directory in the place of this one."""
    (tmp_path / "theirs" / "mine").mkdir(parents=True)
    os.chown(tmp_path / "theirs", NOBODY, NOBODY)
    with pytest.raises(Refused, match=r"theirs, on the way to .*, belongs to user nobody, who could put another directory there"):
        make_private(tmp_path / "theirs" / "mine")
    with pytest.raises(Refused, match="on the way to"):
        make_private(tmp_path / "theirs" / "new")
    assert not (tmp_path / "theirs" / "new").exists()
    (tmp_path / "link").symlink_to("theirs/mine")  # not where the link leads, either
    with pytest.raises(Refused, match="belongs to user nobody"):
        make_private(tmp_path / "link")
    (tmp_path / "their-link").symlink_to(tmp_path)
    os.lchown(tmp_path / "their-link", NOBODY, NOBODY)
    with pytest.raises(Refused, match="is a link of user nobody"):
        make_private(tmp_path / "their-link" / "state")


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o702])
def test_a_way_that_others_can_write(tmp_path, mode):
    """A folder that others can write is refused, on the way and at its end; a sticky one, as /tmp, is not on the way."""
    wide = tmp_path / "wide"
    (wide / "state").mkdir(parents=True, mode=0o700)
    wide.chmod(mode)
    with pytest.raises(Refused, match="can be written by everybody, who could put another directory there"):
        make_private(wide / "state")
    wide.chmod(0o1777)
    make_private(wide / "state")
    (wide / "state").chmod(mode)
    with pytest.raises(Refused, match=r"everybody can write into .*: check that everything in it is yours"):
        make_private(wide / "state")


@root
def test_a_group_that_can_write(tmp_path):
    """Another group is refused as well; the group that a user has for itself is not."""
    (tmp_path / "shared" / "state").mkdir(parents=True, mode=0o700)
    (tmp_path / "shared").chmod(0o775)
    make_private(tmp_path / "shared" / "state")  # group root, of root
    os.chown(tmp_path / "shared", 0, NOBODY)
    with pytest.raises(Refused, match="can be written by group"):
        make_private(tmp_path / "shared" / "state")


def test_links_on_the_way(tmp_path):
    """One's own links are followed, also relative ones and loops; what is not there yet is nobody's."""
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "up").symlink_to("../real/./deep")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "up")
    (tmp_path / "loop").symlink_to("loop")
    for path in ("link/state", "link/state/not/there", "loop/state", "real/up/../deep/x"):
        check_way(tmp_path / path)
    make_private(tmp_path / "link" / "state")
    assert (tmp_path / "real" / "deep" / "state").is_dir()


@pytest.mark.parametrize("name", ["rota.db", "events.jsonl", "tokens.json", "daemon.lock", "launcher.lock", "run", "output"])
def test_planted_links(tmp_path, name):
    """A link in the place of a file or folder of the scheduler is refused, whether it leads anywhere or not."""
    make_private(tmp_path / "state")
    for target in (tmp_path / "victim", tmp_path):
        (tmp_path / "state" / name).symlink_to(target)
        with pytest.raises(Refused, match=f"{name} is a link, which the scheduler does not follow"):
            make_private(tmp_path / "state")
        (tmp_path / "state" / name).unlink()
    assert not (tmp_path / "victim").exists()
    (tmp_path / "state" / name).touch() if name in ("run", "output") else (tmp_path / "state" / name).mkdir()
    with pytest.raises(Refused, match=f"{name} is not a (file|directory)"):
        make_private(tmp_path / "state")


def test_output_follows_no_link(tmp_path):
    """A link, a pipe or a folder planted in the place of a job's output: the job fails and says why, and nothing is written or read."""
    victim, state = tmp_path / "victim", tmp_path / "state"
    victim.write_text("secret")

    async def story():
        async with open_service(state, plan_of(slots())) as service:
            output = state / "output"
            (output / "1.log").symlink_to(victim)
            (output / "2.log").symlink_to(tmp_path / "new")
            os.mkfifo(output / "3.log")
            (output / "4.log").mkdir()
            for id in (1, 2, 3, 4):
                assert run(service, "echo planted", type="small") == id
                job = await finished(service, id)
                assert (job.state, job.exit_code) == ("failed", 126)
                assert job.reason.startswith(f"its output {output}/{id}.log is")
                with pytest.raises(Refused, match="is not a"):
                    service.log(id, 0, 100)
            ran = await finished(service, run(service, "echo mine", type="small"))
            assert service.log(ran.id, 0, 100)[0] == b"mine\n"
            swapped = run(service, f"until [ -e {tmp_path}/go ]; do sleep 0.01; done", type="small")
            await until(lambda: (output / f"{swapped}.log").exists())
            (output / f"{swapped}.log").unlink()
            (output / f"{swapped}.log").symlink_to(victim)  # while it runs
            with pytest.raises(Refused, match="is not a file that can be read"):
                service.log(swapped, 0, 100)
            (tmp_path / "go").touch()
            await finished(service, swapped)

    play(tmp_path, story())
    assert victim.read_text() == "secret"
    assert not (tmp_path / "new").exists()


def test_reading_beyond_the_end(tmp_path):
    """As far as an offset may be."""
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_plain(tmp_path / "file", 8, 100) == b"89"
    assert [read_plain(tmp_path / "file", offset, 100) for offset in (10, 2**31, 2**45, 2**62)] == [b""] * 4
    assert read_plain(tmp_path / "none", 0, 100) == b""


@root
def test_another_user_and_a_directory_of_root(tmp_path, monkeypatch):
    """A user who is not root may go through folders of root, and not use one as state directory."""
    (tmp_path / "root").mkdir()
    (tmp_path / "theirs").mkdir(mode=0o755)
    os.chown(tmp_path / "theirs", NOBODY, NOBODY)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    make_private(tmp_path / "theirs")
    assert (tmp_path / "theirs").stat().st_mode & 0o777 == 0o700
    with pytest.raises(Refused, match="root belongs to user root"):
        make_private(tmp_path / "root")
