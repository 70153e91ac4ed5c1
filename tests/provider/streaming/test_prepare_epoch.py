"""What of an epoch's settings makes another application."""

from __future__ import annotations

from pathlib import Path

from airflow_dagsched.launch.managers.kubernetes.submit import TEMPLATE
from airflow_dagsched.provider.streaming.prepare_epoch import tell_files


def make_settings(folder: Path, template: str) -> dict[str, str]:
    """As an epoch on Kubernetes gets them, its template in a folder of its own."""
    folder.mkdir()
    (folder / "pod.json").write_text(template)
    return tell_files({TEMPLATE: str(folder / "pod.json"), "spark.executor.cores": "2"}, folder)


def test_an_application_with_an_equal_pod_template_is_the_same(tmp_path: Path):
    first, second, other = (make_settings(tmp_path / name, name[0]) for name in ("a1", "a2", "b1"))
    assert first == second != other
    assert second["spark.executor.cores"] == "2"
