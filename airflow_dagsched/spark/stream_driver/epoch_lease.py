"""The right to run an epoch: of two drivers the one that took its lease later has it."""

from __future__ import annotations

import os

from airflow_dagsched.process_names import name_process
from airflow_dagsched.spark.files.store import LocalStore
from airflow_dagsched.spark.outputs.commits import CommitLog
from airflow_dagsched.spark.outputs.leases import Keeper
from airflow_dagsched.spark.stream_driver.graphs.accepted_epoch import AcceptedEpoch
from airflow_dagsched.switch.places import name_lease


class EpochLease:
    """The lease of one epoch, taken as this is made, and renewed until it is given back.

    A later driver of the same epoch takes it at once: whoever started that one took this one for dead.
    """

    def __init__(self, epoch: AcceptedEpoch) -> None:
        flow, manifest = epoch.flow, epoch.manifest
        self._keeper = Keeper(
            CommitLog(LocalStore(), str(flow.work_dir)),
            run_id=epoch.record.x_folder,
            try_id=manifest.try_id,
            task=flow.lease_key,
            lease_s=manifest.lease_s,
            process=name_process(os.getpid()),
        )
        self._lease = self._keeper.acquire_lease(flow.lease_key, name_lease(epoch.number))

    @property
    def lost(self) -> str | None:
        """Why this driver must not go on; None: it may."""
        return self._keeper.lost

    def check(self) -> None:
        """Raise ``LeaseLost`` if another driver has taken it."""
        self._keeper.check_lease(self._lease)

    def give_back(self) -> None:
        """Let the next driver have it at once."""
        self._keeper.close()
