"""A bad network between a broker and its clients: a TCP proxy that cuts, slows and loses what they send."""

from __future__ import annotations

import asyncio
import random
import struct
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lab.errors import LabFault
from lab.inputs.faults import CUT, DELAY, LOSS, Injection
from lab.trial.closing import reason

HEAD = struct.Struct(">ihhih")  # of a request of Kafka's: its size, api, version and number, and the length of the client's id
PIECE = 2**16  # bytes that are carried at a time, at most
DELAY_S = 0.25  # that a piece takes longer, either way; what comes meanwhile waits for that, too
LOST_SHARE, RESEND_S = 0.1, 0.2  # of the pieces; how long one that is lost waits, as TCP's shortest timeout, doubled each time
SARAMA = "sarama"  # the id of KEDA as a client, whose kafka trigger finds Kafka where the consumers do
ENDS_S = 5.0  # within which the loop opens its address, and ends what is open
T = TypeVar("T")


class Network:
    """Between a broker and the consumers, and KEDA: a TCP proxy at the address ``front``, in a thread, until :meth:`close`.

    It is a proxy, and no network: what is done to a connection is what TCP shows of it. A cut lets nothing pass, either way,
    and closes nothing; what was sent meanwhile arrives afterwards. A delay is DELAY_S, or twice that, each way. A piece that
    is lost waits until it is sent again, and so does all behind it. A client is known by its id, which is in
    the head of each request.
    """

    def __init__(self, front: str, broker: str) -> None:
        self.front, self._broker, self._fault = front, broker, ""
        self._struck: dict[str, tuple[Injection, random.Random, asyncio.Event]] = {}
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._lose)
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()
        try:
            self._server = self._run(asyncio.start_server(self._serve, *front.split(":")))
        except OSError as error:
            self._stop()
            raise LabFault(f"the consumers' network can't be at {front}: {reason(error)}") from None

    def strike(self, client_id: str, one: Injection) -> Callable[[], object]:
        """Do ``one`` to all connections of this client, old and new, until what it returns is called."""
        over = asyncio.Event()
        self._struck[client_id] = struck = one, random.Random(one.draw), over

        def end() -> None:
            if self._struck.get(client_id) is struck:  # a later fault may have taken its place
                del self._struck[client_id]
            self._loop.call_soon_threadsafe(over.set)

        return end

    def check(self) -> None:
        """Raise :class:`LabFault` where a connection ended by a fault of the lab's."""
        if self._fault:
            raise LabFault(self._fault)

    def close(self) -> None:
        """End all connections."""
        self._run(self._end())
        self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(ENDS_S)

    async def _end(self) -> None:
        self._server.close()
        open_ones = asyncio.all_tasks() - {asyncio.current_task()}
        for one in open_ones:
            one.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)

    def _lose(self, _: object, context: dict[str, Any]) -> None:
        self._fault = self._fault or f"the consumers' network: {context.get('exception') or context['message']}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection, whichever side ends it."""
        ends = [writer]
        try:
            head = await reader.readexactly(HEAD.size)
            head += (name := await reader.readexactly(max(0, HEAD.unpack(head)[-1])))
            client_id = name.decode(errors="replace")
            await self._pass(client_id)
            there, onward = await asyncio.open_connection(*self._broker.split(":"))
            ends.append(onward)
            onward.write(head)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(client_id, reader, onward))
                both.create_task(self._carry(client_id, there, writer))
        except* (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # as connections end
        finally:
            for end in ends:
                end.close()

    async def _carry(self, client_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one way, piece by piece. Raises ``ConnectionResetError`` at its end, so that the other way ends, too."""
        while piece := await reader.read(PIECE):
            await self._pass(client_id)
            writer.write(piece)
            await writer.drain()
        raise ConnectionResetError

    async def _pass(self, client_id: str) -> None:
        """Return when what came now may pass."""
        resend_s = RESEND_S
        while (struck := self._struck.get(client_id)) is not None:
            one, drawn, over = struck
            if one.kind == CUT:
                await over.wait()
            elif one.kind == LOSS and drawn.random() < LOST_SHARE:
                await asyncio.sleep(resend_s)
                resend_s *= 2
            else:
                if one.kind == DELAY:
                    await asyncio.sleep(DELAY_S)
                return
