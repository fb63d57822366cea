"""The generated messages are what the committed proto generates."""

from pathlib import Path

from grpc_tools import protoc

from lab.programs import lagscaler

FOLDER = Path(lagscaler.__file__).parent
ROOT = FOLDER.parents[2]


def test_generating_again_gives_the_same_bytes(tmp_path):
    """To change them: python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. then the .proto file's path from here."""
    source = FOLDER / "externalscaler.proto"
    flags = ["protoc", f"-I{ROOT}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", str(source)]
    assert protoc.main(flags) == 0
    for name in ("externalscaler_pb2.py", "externalscaler_pb2.pyi"):
        assert (tmp_path / "lab" / "programs" / "lagscaler" / name).read_bytes() == (FOLDER / name).read_bytes()
