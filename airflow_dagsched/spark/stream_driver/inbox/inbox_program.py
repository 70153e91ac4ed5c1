"""The program that fills a flow's inboxes: ``spark-submit .. main.py <flow>/inbox-service``."""

from __future__ import annotations

from pyspark.sql import SparkSession

from airflow_dagsched.spark.stream_driver.application import StreamApplication
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch, read_folder
from airflow_dagsched.spark.stream_driver.inbox.inbox_run import InboxRun
from airflow_dagsched.spark.stream_driver.program import Program
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import INBOX_SERVICE, FlowPlaces
from airflow_dagsched.switch.records import Epoch


class InboxApplication(StreamApplication):
    """Runs what routes, and no graph; it advances switches as each driver does."""

    def _accept(self, record: Epoch) -> AcceptedEpoch | None:
        self._others.add(record.epoch)
        return None


class InboxProgram(Program):
    """One run of it."""

    def accept(self) -> AcceptedEpoch:
        """What routes: as an epoch without a number. Raises ``Refused``."""
        flow = FlowPlaces(self.folder.parent)
        log = FlowLog(flow.log)
        log.read()
        places = flow.inbox_service
        manifest, payload = read_folder(flow, places, self.masking)
        readers = [each.record for each in log.story.epochs.values() if each.record.channel == "inbox"]
        asked = [each for each in readers if each.fingerprint == manifest.fingerprint]
        record = Epoch(
            n=0,
            at=0.0,
            epoch=INBOX_SERVICE,
            fingerprint=manifest.fingerprint,
            run_id=manifest.run_id,
            # Only as it begins for the first time: later its checkpoint says where.
            start=asked[0].start if asked else None,
            x_folder=self.folder.name,
        )
        return AcceptedEpoch(record, flow, places, manifest, payload, self.masking)

    def open(self, main: SparkSession, epoch: AcceptedEpoch) -> StreamApplication:
        """See ``Program``."""
        return InboxApplication(main, epoch, open_run=InboxRun)
