"""Files are replaced whole or not at all; what is no file is written as it is."""

import os
import threading

import pytest

from fitmart.warehouse.errors import StorageError
from fitmart.warehouse.files import replacing


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "new" / "a.csv"
    for text in ("first", "second"):
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text
    assert [p.name for p in path.parent.iterdir()] == ["a.csv"]


def test_a_failure_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old", encoding="utf-8")

    def fill_the_disk():
        with replacing(path) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match="cannot write"):
        fill_the_disk()
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    with replacing(pipe) as target:
        target.write_text("rows", encoding="utf-8")
    reader.join(timeout=10)
    assert got == ["rows"]
    assert pipe.is_fifo()
