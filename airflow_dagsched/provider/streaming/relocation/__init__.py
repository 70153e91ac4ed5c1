"""A running stream goes to other workers, if it is better off there: a switch to the same code.

::

    log, signs of life ─> lags ──┐
    cluster, every 30 s ─────────┴> the policy: what would move ──> where has a second graph room? ──> strictly better?
        ──> twice the same: a run ──> looks once more: a new epoch of the same code, catches up there, takes over

``lags`` what of the stream's state is where; ``judge_move`` what is better; ``settle_move`` two equal looks;
``placing`` what a stream is planned with, kept for looks without its DAG file; ``move_watch`` asks the cluster.
"""
