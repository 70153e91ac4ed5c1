"""The program of a standby: ``spark-submit .. main.py <flow>/standby/<number>``."""

from __future__ import annotations

from pyspark.sql import SparkSession

from airflow_dagsched.spark.stream_driver.application import StreamApplication
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch, read_folder
from airflow_dagsched.spark.stream_driver.program import Program
from airflow_dagsched.spark.stream_driver.standby.standby_application import StandbyApplication
from airflow_dagsched.switch.places import STANDBY, EpochPlaces, FlowPlaces
from airflow_dagsched.switch.records import Epoch


class StandbyProgram(Program):
    """One run of it."""

    def accept(self) -> AcceptedEpoch:
        """The epoch whose application it is like, as one without a number. Raises ``Refused``."""
        flow, places = FlowPlaces(self.folder.parent.parent), EpochPlaces(self.folder)
        manifest, payload = read_folder(flow, places, self.masking)
        record = Epoch(
            n=0,
            at=0.0,
            epoch=STANDBY,
            fingerprint=manifest.fingerprint,
            run_id=manifest.run_id,
            x_folder=self.folder.name,
        )
        return AcceptedEpoch(record, flow, places, manifest, payload, self.masking)

    def open(self, main: SparkSession, epoch: AcceptedEpoch) -> StreamApplication:
        """See ``Program``."""
        return StandbyApplication(main, epoch)
