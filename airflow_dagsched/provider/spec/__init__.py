"""What an author has declared, as frozen values, and what such declarations are made of.

``DataflowSpec`` (settings, steps, repeats, the author's graph) and ``LaunchSpec`` (one group of it) are what
authoring and wiring hand to a run; ``RunFacts`` is what Airflow has said about that run. ``call_arguments`` and
``step_declaration`` read what an author wrote, ``work_dir`` and ``configuration`` where things are kept. All rooms of
the provider may import these; they import none of them.
"""
