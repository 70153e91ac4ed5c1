"""What is known of single steps before and while they run.

In: a step's code, its rendered arguments, its SQL, how those above it ended. Out: a fingerprint of what it does
(``code``), whether equal inputs make equal rows (``static``, ``sql_words``), whether it depends on the interval
(``dated``), what its SQL asks of its tables (``sql_facts``), that it can't run (``outcome``) or need not (``pruned``),
and whether it gets anywhere (``progress``).

Called by the launch task before a submit, and by the driver program for what it sees as it runs. A doubt always costs a
repetition, never an answer: what is not understood counts as different each time.
"""
