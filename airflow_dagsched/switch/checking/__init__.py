"""Whether a flow's log is right, judged by what a log promises and by nothing that writes one.

Comes in: a folder of records. Goes out: each rule that it breaks, and which windows were whose. It knows the keys of
records, and shares no code with the protocol: what both got wrong alike would never be found.
"""
