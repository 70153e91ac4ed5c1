"""Whether a SQL text, or a piece of one, says all that its value depends on.

Every ``(`` must follow an operator or a word known to Spark as always the same for the same arguments, and no word may
be one that Spark takes for the clock, the user or a file. What is not in the list, such as a registered function, is
not known. Comments, literals and sentences are looked at like all else: one more doubt costs a repeat, no rows.

    coalesce(a, b) in (1, 2)      current_date      my_function(a)      {function}(a)      '${spark.my.day}'
    known                         a clock           not known           not known          a setting
"""

from __future__ import annotations

import re


def split_words(*texts: str) -> frozenset[str]:
    """All the words of ``texts``."""
    return frozenset(" ".join(texts).split())


_BEFORE_PAREN = re.compile(r"([\w.`]+|[(,=<>+\-*%|&!~\[]|\S|^)\s*\(")
_OPERATORS = frozenset("(,=<>+-*%|&!~[")
_WORD = re.compile(r"\w+")
_SUBSTITUTED = "${"  # Spark puts a setting's value in its place before it parses the text
_NOT_A_VALUE = split_words(
    """
    current_catalog current_date current_database current_path current_schema current_time current_timestamp
    current_timezone current_user localtimestamp now session_user tablesample today tomorrow yesterday _metadata
    input_file_name input_file_block_start input_file_block_length
    """
)
"""Without parentheses, too, or in a literal, as ``date'today'``."""
_KEYWORDS = split_words(
    """
    all and any array as between by case cross cube decimal distinct else except exists filter from group
    grouping having if in inner intersect interval is join lateral left like limit map minus not on or order
    over partition pivot qualify right rlike rollup select sets some struct then union using values varchar when
    where with within window
    """
)
_FUNCTIONS = split_words(
    # numbers
    """
    abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees div e
    exp expm1 factorial floor greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod positive pow
    power radians rint round sec sign signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply
    try_subtract unhex width_bucket bit_count bit_get getbit shiftleft shiftright shiftrightunsigned
    """,
    # dates
    """
    add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime
    from_utc_timestamp hour last_day make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz
    make_timestamp_ntz make_ym_interval minute month monthname months_between next_day quarter second
    timestamp_micros timestamp_millis timestamp_seconds to_date to_timestamp to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp trunc try_make_interval try_make_timestamp try_to_timestamp unix_date
    unix_micros unix_millis unix_seconds weekday weekofyear year
    """,
    # aggregates and windows
    """
    any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or
    collect_list collect_set corr count count_if covar_pop covar_samp every first first_value grouping_id
    kurtosis last last_value listagg max max_by mean median min min_by mode percentile percentile_approx
    percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy skewness std stddev stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp
    variance cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
    """,
    # texts
    """
    ascii base64 bit_length btrim char char_length character_length chr concat_ws contains decode elt encode
    endswith find_in_set format_number format_string initcap instr lcase len length levenshtein locate lower
    lpad ltrim mask octet_length overlay position printf regexp regexp_count regexp_extract regexp_extract_all
    regexp_instr regexp_like regexp_replace regexp_substr repeat replace rpad rtrim sentences soundex space
    split split_part startswith substr substring substring_index to_binary to_char to_number to_varchar
    translate trim try_to_binary try_to_number ucase unbase64 upper ilike
    """,
    # conditions, casts and digests
    """
    coalesce equal_null ifnull isnan isnotnull isnull nanvl nullif nullifzero nvl nvl2 zeroifnull bigint binary
    boolean cast date double float int smallint string timestamp tinyint try_cast typeof crc32 hash md5 sha sha1
    sha2 xxhash64
    """,
    # arrays, maps and structs
    """
    aggregate array_append array_compact array_contains array_distinct array_except array_insert array_intersect
    array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort
    array_union arrays_overlap arrays_zip cardinality concat element_at explode explode_outer flatten forall get
    inline inline_outer map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries
    map_keys map_values map_zip_with named_struct posexplode posexplode_outer reduce reverse sequence size slice
    sort_array stack str_to_map transform_keys transform_values try_element_at zip_with
    """,
    # formats
    """
    from_csv from_json get_json_object json_array_length json_object_keys json_tuple parse_url to_csv to_json
    url_decode url_encode
    """,
)
KNOWN = _KEYWORDS | _FUNCTIONS


def is_self_contained(text: str) -> bool:
    """Whether nothing in ``text`` could be of another value in another run."""
    lower = text.lower()
    if _SUBSTITUTED in lower or _NOT_A_VALUE & {*_WORD.findall(lower)}:
        return False
    return all(_is_known(match[1]) for match in _BEFORE_PAREN.finditer(lower))


def _is_known(before: str) -> bool:
    """Whether what stands before a ``(`` is known."""
    return before in _OPERATORS or before.strip("`") in KNOWN
