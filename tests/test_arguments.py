"""Files that people name are written whole or not at all."""

import pytest

import rota
from rota.arguments import whole_file, write_text


def test_a_file_is_replaced_at_the_end(tmp_path):
    """Until then the old one is there, and the new one has a name beside it with the same ending."""
    file = tmp_path / "a.csv"
    file.write_text("old", encoding="utf-8")
    with whole_file(file) as place:
        place.write_text("new", encoding="utf-8")
        assert (place.parent, place.suffix) == (tmp_path, ".csv")
        assert file.read_text(encoding="utf-8") == "old"
    assert file.read_text(encoding="utf-8") == "new"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_failure_changes_nothing(error, tmp_path):
    """Neither the file nor what is beside it."""
    file = tmp_path / "a"
    file.write_text("old", encoding="utf-8")

    def fail() -> None:
        with whole_file(file) as place:
            place.write_text("half", encoding="utf-8")
            raise error

    with pytest.raises(error):
        fail()
    assert file.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_place_that_cannot_be_written(tmp_path):
    """The error names it."""
    with pytest.raises(rota.BadSpec, match="cannot be written: No such file or directory"):
        write_text(tmp_path / "none" / "a", "text")
