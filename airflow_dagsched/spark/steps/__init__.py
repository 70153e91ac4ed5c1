"""The steps of one application: who reads what, how each is called, what it handed over, how its turn went.

In: the manifest's ``StepSpec``s and the calls that were pickled for them. Out: for each dataset whether it is written,
kept, run or handed over lazily (``lineage``); a step's answer (``call_step``); the rows that it made,
for who reads them (``step_results``); and, once all that a step feeds is complete, the event of its end (``ledger``).

``lineage`` and ``ledger`` need no Spark. May be called by ``reuse`` and ``driver``.
"""
