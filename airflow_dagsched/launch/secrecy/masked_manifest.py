"""The manifest as anybody may see it: a context value or a table's option may be a secret; the payload has it whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.launch.secrecy.masking import Masking


def mask_manifest(manifest: Any, masking: Masking, names: Sequence[str] = ("context", "steps")) -> str:
    """``manifest``, a dataclass, as JSON without the secrets in the fields of these names: those that ``masking``
    knows, and those that it learns here.
    """
    raw = encode_plain(manifest)
    # Nothing else: a secret may also be a step's id or a folder, and those must arrive as they are.
    shown = {name: raw[name] for name in names}
    masking.learn(shown)
    return json.dumps({**raw, **masking.value(shown)}, sort_keys=True, indent=1)
