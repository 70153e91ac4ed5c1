"""Which of Spark's settings a graph may have for itself, in an application that others run in, too."""

from __future__ import annotations

OF_SQL = "spark.sql."
OF_METASTORES = "spark.sql.hive.metastore."
"""Fixed as well, all of them."""
FIXED = frozenset(
    {
        *("spark.sql.extensions", "spark.sql.warehouse.dir", "spark.sql.catalogImplementation", "spark.sql.debug"),
        *("spark.sql.globalTempDatabase", "spark.sql.cache.serializer", "spark.sql.queryExecutionListeners"),
        *("spark.sql.streaming.streamingQueryListeners", "spark.sql.streaming.ui.enabled"),
        *("spark.sql.streaming.ui.enabledCustomMetricList", "spark.sql.streaming.ui.retainedProgressUpdates"),
        *("spark.sql.streaming.ui.retainedQueries", "spark.sql.ui.retainedExecutions"),
        *("spark.sql.codegen.cache.maxEntries", "spark.sql.codegen.comments", "spark.sql.event.truncate.length"),
        *("spark.sql.broadcastExchange.maxThreadThreshold", "spark.sql.resultQueryStage.maxThreadThreshold"),
        *("spark.sql.shuffleExchange.maxThreadThreshold", "spark.sql.subquery.maxThreadThreshold"),
        *("spark.sql.sources.disabledJdbcConnProviderList", "spark.sql.sources.schemaStringLengthThreshold"),
        *("spark.sql.defaultUrlStreamHandlerFactory.enabled", "spark.sql.filesourceTableRelationCacheSize"),
        *("spark.sql.legacy.sessionInitWithConfigDefaults", "spark.sql.metadataCacheTTLSeconds"),
        *("spark.sql.hive.thriftServer.singleSession", "spark.sql.hive.version"),
    }
)
"""Settings of SQL that Spark (4.2) takes as an application starts, and refuses in one that runs."""


_OFFSETS = "where an epoch is has to be read by the next one"
_STATE = "two drivers of one epoch may meet for a moment, and state has to be read by the next epoch"
_STREAMING = "spark.sql.streaming."
OURS = {
    f"{_STREAMING}queryEvolution.enableSourceEvolution": _OFFSETS,
    f"{_STREAMING}offsetLog.formatVersion": _OFFSETS,
    f"{_STREAMING}minBatchesToRetain": _OFFSETS,
    f"{_STREAMING}checkpointFileManagerClass": _OFFSETS,
    f"{_STREAMING}stateStore.providerClass": _STATE,
    f"{_STREAMING}stateStore.rocksdb.changelogCheckpointing.enabled": _STATE,
    f"{_STREAMING}stateStore.checkpointFormatVersion": _STATE,
    f"{_STREAMING}stateStore.commitValidation.enabled": "a batch that was recorded must have all of its state",
    f"{_STREAMING}noDataMicroBatches.enabled": "the last windows of an epoch come in a batch without rows",
    f"{_STREAMING}multipleWatermarkPolicy": "of several sources the slowest one closes windows, or its rows are lost",
    f"{_STREAMING}stopTimeout": "a query that hangs must not hold up the others of its application",
}
"""Settings that what a stream promises is built on, and why; none of them is the author's."""


def is_of_session(name: str) -> bool:
    """Whether a running application takes the setting, for a session; all others only a new one does."""
    return name.startswith(OF_SQL) and name not in FIXED and not name.startswith(OF_METASTORES)
