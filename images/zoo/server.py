"""The counter of images/counter as a Python program on asyncio: GET / adds one, GET /peek does not, GET /healthz,
GET /cat/PATH returns the contents of a file.

NOTEBOOK: a file to which each count is appended and which is read back for every answer. With READER=1 the program
appends nothing: the count is the one that another container of the pod wrote there, and memory counts the readings.
"""
import asyncio
import json
import os
import signal
import socket

HOST = os.environ.get("HOST", "0.0.0.0")
PORT = int(os.environ.get("PORT", "8080"))
NOTEBOOK = os.environ.get("NOTEBOOK")
READER = os.environ.get("READER") == "1"
state = {"count": 0, "ticks": 0, "readings": 0}


def noted():
    try:
        with open(NOTEBOOK, encoding="ascii") as file:
            return len(file.read().split())
    except FileNotFoundError:
        return 0


def answer(path):
    if path == "/" and not READER:
        state["count"] += 1
        if NOTEBOOK:
            with open(NOTEBOOK, "a", encoding="ascii") as file:
                file.write(f"{state['count']}\n")
    result = {**state, "pid": os.getpid(), "host": socket.gethostname()}
    if NOTEBOOK:
        result["noted"] = noted()
    if READER:
        state["readings"] += 1
        result |= {"count": result["noted"], "readings": state["readings"]}
    return json.dumps(result)


async def serve(reader, writer):
    request = await reader.readline()
    while (await reader.readline()).strip():
        pass
    # A connection that was open at the dump is restored as closed: no request comes over it.
    if not request.endswith(b"\n"):
        writer.close()
        return
    path = request.split()[1].decode()
    if path == "/crash":
        os._exit(7)
    if path.startswith("/cat/"):
        with open(path.removeprefix("/cat"), encoding="utf-8") as file:
            body = json.dumps({"text": file.read()})
    else:
        body = "ok" if path == "/healthz" else answer(path)
    writer.write(
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
    )
    await writer.drain()
    writer.close()


async def tick():
    while True:
        await asyncio.sleep(0.1)
        state["ticks"] += 1


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    server = await asyncio.start_server(serve, HOST, PORT)
    print(f"listening on {PORT}", flush=True)
    await asyncio.gather(server.serve_forever(), tick())


asyncio.run(main())
