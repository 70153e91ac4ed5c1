"""Tasks that show a step, or hold mirrors back, and the triggers that end them: all in the triggerer, without a
worker.

Comes in: a launch task's id, its state and its feed, as Airflow has them. Goes out: one trigger event a mirror, with
the step's own end. One poll serves all mirrors of a launch task (``mirror.py``), one all gates of a DAG
(``start.py``): a triggerer answers its triggers one at a time. ``pools`` refuses a run whose mirrors would take the
slots that their launch tasks wait for. The scheduler starts the triggers by their dotted names; the wiring knows
those alone.
"""
