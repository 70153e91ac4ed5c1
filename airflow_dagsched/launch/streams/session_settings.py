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


def is_of_session(name: str) -> bool:
    """Whether a running application takes the setting, for a session; all others only a new one does."""
    return name.startswith(OF_SQL) and name not in FIXED and not name.startswith(OF_METASTORES)
