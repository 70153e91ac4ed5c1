"""The demo's input is what the airports reported."""

from pathlib import Path

import pyarrow.dataset
import pyarrow.parquet

from demo.flights_data import read_csv, write_days


def test_days_are_folders_and_nothing_is_lost(tmp_path: Path) -> None:
    """Three flights of two days; NA is null; the first hour of the local day is a UTC instant."""
    header = "year,month,day,dep_delay,tailnum,time_hour\n"
    rows = [
        "2013,1,1,2,N14228,2013-01-01T05:00:00Z",
        "2013,1,1,NA,NA,2013-01-01T06:00:00Z",
        "2013,11,5,0,N1,2013-11-05T10:00:00Z",
    ]
    write_days(read_csv((header + "\n".join(rows)).encode()), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["day=2013-01-01", "day=2013-11-05"]
    first = pyarrow.parquet.ParquetFile(next((tmp_path / "day=2013-01-01").iterdir())).read()
    assert first.column_names == ["dep_delay", "tailnum", "time_hour"]
    assert first["dep_delay"].to_pylist() == [2, None]
    assert first["tailnum"].to_pylist() == ["N14228", None]
    assert str(first["time_hour"].to_pylist()[0]) == "2013-01-01 05:00:00+00:00"
    assert pyarrow.dataset.dataset(tmp_path, partitioning="hive").count_rows() == 3
