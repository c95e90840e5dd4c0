"""Compares two versions of the standard and sorts every difference into editorial, additive and breaking.

One command, ``python -m changes OLD [NEW]``, reads the registers of ``spec/`` and the published interface of two
versions, git revisions or folders, and prints what differs. ``requirements.py`` has the rules of registers,
``interface.py`` those of schemas and operations, ``stability.py`` those of marks; ``change.py`` lists all rules with
what they find.

- *Breaking*: somebody who did right by the old version does not by the new one, or verdicts of the two do not compare.
- *Additive*: what the old version allows and promises still holds, and there is more.
- *Editorial*: words alone.

A breaking change is told with the mark that its item had: of a stable one as such, of a provisional one as permitted.

Sources: clause *Data*, section *Evolution* (COM-031, COM-035), of which this is the test; Semantic Versioning 2.0.0.
"""
