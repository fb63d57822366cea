"""The recommended policy against what a session concluded: every setting that the session decides otherwise is named. Pure."""

from lab.judge.pairs import FEWEST

# Where a ScaledObject's spec has each setting that experiments conclude about, and the default where it says nothing.
SETTINGS = {
    "lagThreshold": (("triggers", 0, "metadata", "lagThreshold"), None),
    "allowIdleConsumers": (("triggers", 0, "metadata", "allowIdleConsumers"), False),
    "useCachedMetrics": (("triggers", 0, "useCachedMetrics"), False),
    "maxReplicaCount": (("maxReplicaCount",), 100),
    "triggers": (("triggers",), None),  # their kinds
}


def beaten(conclusions, policy, runs):
    """A line for each setting of ``policy`` that ``conclusions`` decide otherwise; none of fewer than six ``runs``."""
    if runs < FEWEST:
        return []
    return [
        f"{row.setting}: the recommended policy has {_text(_setting(policy, row.setting))}, this session concludes "
        f"{_text(row.value)} ({row.experiment}: {row.because})"
        for row in conclusions
        if row.setting in SETTINGS and _text(_setting(policy, row.setting)) != _text(row.value)
    ]


def _setting(policy, name):
    path, default = SETTINGS[name]
    value = policy["spec"]
    for key in path:
        if isinstance(value, dict) and key not in value:
            return default
        value = value[key]
    return value


def _text(value):
    """The value in one form: YAML has a number or a string of it, a switch or its word, with quotes or without.

    Triggers are their kinds, each once.
    """
    if isinstance(value, list):
        return ", ".join(sorted({trigger["type"] for trigger in value}))
    text = str(value).strip("\"'").lower()
    try:
        return f"{float(text):g}"
    except ValueError:
        return text
