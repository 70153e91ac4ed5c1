"""Whether what a step's code uses proves that equal inputs make equal rows, in whatever run.

Modules are known by name; nearly all of Python's that reach outside the process, and all of others, are not. Names are
the other way about: of what can be reached from known modules, DataFrames and a session, those are listed that bring
in a clock, chance, the environment, a file or another setting. A name is looked at wherever it stands, as a column's
too: one doubt too many costs a repeat, one too few a table with another day's rows.
"""

from __future__ import annotations

from airflow_dagsched.launch.steps.code import Uses
from airflow_dagsched.launch.steps.sql_words import is_self_contained, split_words

_MODULES = split_words(
    """
    __future__ abc base64 bisect builtins calendar collections collections.abc copy copyreg dataclasses datetime
    decimal enum fractions functools hashlib heapq itertools json math numbers operator pathlib pathlib._local
    re string textwrap typing unicodedata zoneinfo _bisect _collections _functools _heapq _operator pyspark
    pyspark.sql pyspark.sql.column pyspark.sql.dataframe pyspark.sql.functions pyspark.sql.functions.builtin
    pyspark.sql.group pyspark.sql.session pyspark.sql.types pyspark.sql.udf pyspark.sql.window
    pyspark.storagelevel airflow_dagsched.launch.protocol.calls airflow_dagsched.launch.protocol.interval
    airflow_dagsched.launch.protocol.payload airflow_dagsched.launch.protocol.tables
    """
)
_SESSION = split_words(
    """
    SparkContext SparkSession active context ctx getActiveSession getOrCreate newSession sparkContext
    sparkSession sql_ctx _active_session _jdf _jrdd _jsparkSession _jvm _sc _session
    """
)
_VARYING = split_words(
    # clocks
    """
    curdate current_date current_time current_timestamp current_timezone localtimestamp monotonic now
    perf_counter time time_ns today unix_timestamp utcnow
    """,
    # chance, and how rows happen to lie
    """
    monotonically_increasing_id rand randint randn random randomSplit randstr sample sampleBy secrets shuffle
    spark_partition_id takeSample uniform urandom uuid uuid1 uuid4
    """,
    # the environment, the application, its settings
    """
    TaskContext SparkFiles applicationAttemptId applicationId conf current_catalog current_database current_path
    current_schema current_user environ getConf getLocalProperty getenv modules os partitionId platform
    session_user socket startTime sys uiWebUrl user version aes_encrypt try_aes_encrypt
    """,
    # files, and programs
    """
    cwd exists expanduser glob home inputFiles input_file_block_length input_file_block_start input_file_name io
    is_dir is_file iterdir listdir lstat metadataColumn open pipe read_bytes read_text readlink resolve rglob
    samefile scandir stat subprocess walk
    """,
    # what is called by a name nobody sees
    """
    attrgetter call_function call_udf importlib java_method methodcaller pandas reflect try_reflect __builtins__
    __dict__ __getattribute__ __globals__ __import__ __loader__ __spec__ __subclasses__
    """,
)
_BUILTINS = split_words(
    """
    __import__ breakpoint compile delattr dir eval exec getattr globals hash id input locals open setattr vars
    """
)


def may_hold_session(uses: Uses) -> bool:
    """Whether the code may come by a session that nobody handed to it."""
    return bool(_SESSION & uses.names)


def may_vary(uses: Uses) -> bool:
    """Whether rows may depend on more than inputs, arguments and what a session reads."""
    unknown = uses.modules - _MODULES or uses.names & _VARYING or uses.bare & _BUILTINS
    return bool(unknown) or not all(is_self_contained(text) for text in uses.texts)
