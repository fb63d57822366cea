"""What is pure of starting a broker."""

import uuid

from lab.kafka.broker import cluster_id


def test_a_cluster_id_is_never_taken_for_an_option(monkeypatch):
    """One random id in 64 would begin with a dash: it is drawn again."""
    drawn = iter([uuid.UUID(bytes=b"\xf8" + bytes(15)), uuid.UUID(bytes=bytes(16))])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(drawn))
    assert cluster_id() == "A" * 22
