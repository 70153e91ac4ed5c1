"""A plan for people: sentences of its reasons, a page of text, pictures.

Comes in: a ``Plan``, or one reason as a value (``plan.reasons``). Goes out: text. Nothing here decides anything, and
nothing reads these texts again but people: whoever needs the fact behind a sentence takes the value.

    sentences   a reason -> its sentence; the texts in a plan's JSON are made here alone, and in ``group_sentences``,
                which a parse loads without the others
    words       seconds, bytes, counts and long lists as they are said in a sentence
    certainty   how sure its seconds are: what is measured, declared, assumed; what no plan can beat
    page        a plan -> the page that ``dagsched plan --format text`` prints
    alike       groups that differ in nothing a person asks for: shown once, with a count
    bars        the groups of that page on a time line
    picture     a plan -> a graph for Graphviz, or its time line as SVG

Who may call it: every pass of the planner for the sentence of a reason, at the moment it is put into the plan; command
line and provider for pages and pictures. It imports the plan's values and the reasons, and nothing that plans.
"""
