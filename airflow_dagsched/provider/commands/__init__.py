"""``airflow dagsched plan``, ``tune`` and ``clean``.

Comes in: arguments, and the DAG files they name, read without Airflow's database. Goes out: one document or a few
lines on standard output, else one line on standard error and the exit codes of ``dagsched`` (2: bad input, 3: does
not fit). Only ``tune`` writes beside a DAG file, and only ``clean`` removes anything. ``cli.py`` is imported by every
``airflow`` call, so it names the others by their dotted paths.
"""
