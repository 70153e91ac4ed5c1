"""What a driver prints does not grow for ever."""

from __future__ import annotations

from pathlib import Path

from airflow_dagsched.spark.stream_driver.output_file import rotate_output


def test_what_is_too_long_is_put_aside_and_writers_go_on(tmp_path: Path):
    path, aside = tmp_path / "driver.log", tmp_path / "driver.log.1"
    rotate_output(path, 10)
    with path.open("ab", buffering=0) as output:
        output.write(b"0123456789")
        rotate_output(path, 10)
        assert not aside.exists()
        output.write(b"ab")
        rotate_output(path, 10)
        assert (path.read_bytes(), aside.read_bytes()) == (b"", b"23456789ab")
        output.write(b"c")
    assert path.read_bytes() == b"c"
