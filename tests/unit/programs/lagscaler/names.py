"""A DNS server that knows the pods behind a headless Service, as a cluster's has them; gRPC is sent to it by ``dns://``."""

import contextlib
import socket
import socketserver
import struct
import threading

ANSWERED = b"\x81\x80"  # a response, with recursion, without an error
ADDRESS = b"\x00\x01"  # type A


@contextlib.contextmanager
def named(*addresses):
    """Serve ``addresses`` under every name; yields the server's own HOST:PORT."""

    class Question(socketserver.BaseRequestHandler):
        def handle(self):
            """Answer the one question of a request, whatever name it asks for; it has no other records than addresses."""
            asked, back = self.request
            end = asked.index(b"\0", 12) + 5  # the name, then type and class
            known = addresses if asked[end - 4 : end - 2] == ADDRESS else ()
            answer = asked[:2] + ANSWERED + struct.pack(">4H", 1, len(known), 0, 0) + asked[12:end]
            for address in known:
                answer += struct.pack(">3HIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(address)
            back.sendto(answer, self.client_address)

    with socketserver.ThreadingUDPServer(("127.0.0.1", 0), Question) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
