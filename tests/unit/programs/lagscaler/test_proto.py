"""The generated messages are what the committed proto generates, and what they can't carry."""

from pathlib import Path

from grpc_tools import protoc

from lab.programs import lagscaler
from lab.programs.lagscaler import externalscaler_pb2 as pb

FOLDER = Path(lagscaler.__file__).parent
ROOT = FOLDER.parents[2]


def test_generating_again_gives_the_same_bytes(tmp_path):
    """To change them: python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. then the .proto file's path from here."""
    source = FOLDER / "externalscaler.proto"
    flags = ["protoc", f"-I{ROOT}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", str(source)]
    assert protoc.main(flags) == 0
    for name in ("externalscaler_pb2.py", "externalscaler_pb2.pyi"):
        assert (tmp_path / "lab" / "programs" / "lagscaler" / name).read_bytes() == (FOLDER / name).read_bytes()


def fields(message):
    """The names of a message's fields."""
    return sorted(field.name for field in message.DESCRIPTOR.fields)


def test_an_answer_has_no_timestamp():
    """The text's GetMetrics response has one beside name and value."""
    assert fields(pb.MetricValue) == ["metricName", "metricValue", "metricValueFloat"]


def test_a_scaler_is_told_of_no_replicas_and_of_no_scaling():
    """So a pause that begins with a scaling, as the text has it, is not a scaler's to keep."""
    assert fields(pb.ScaledObjectRef) == ["name", "namespace", "scalerMetadata"]
    assert fields(pb.GetMetricsRequest) == ["metricName", "scaledObjectRef"]
