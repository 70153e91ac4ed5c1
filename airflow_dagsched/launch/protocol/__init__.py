"""What launch task, driver program and mirrors tell each other: values, their JSON, and what follows from them.

::

    launch task ── manifest, calls ──> driver program
                <── events ───────────                     launch task ── feed ──> mirrors ── verdict

Frozen dataclasses and the standard library alone, since the driver program may run where there is nothing else. What
comes from another process is looked at as deep as it goes before it is believed (``wire``); of two tries of a task the
later one counts (``identity``); what is pushed has a largest size (``push_limit``). No other room of ``launch`` is
known here, and nothing is read or written.
"""
