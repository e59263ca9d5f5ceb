"""The service under load: how fast it answers, with a thousand clients, and while things break.

    python -m benchmarks.service --write         # all of it, some twelve minutes, into docs/service.md
    python -m benchmarks.service --only latency  # or clients, soak, postgres, disk
    python -m benchmarks.service --only soak --minutes 10

`latency`: checks per second and percentiles of the time from submission to report, for questions that are
answered already, for small and for large programs. `clients`: a thousand connections at once. `soak`: a day
shrunk to minutes, while workers are killed, the service is killed and started again, and what is uploaded is
damaged; at the end every check that was accepted has the answer that `check` gives. `postgres`: the same, for
half as long, on PostgreSQL, to which all connections are dropped again and again. `disk`: a full store.

What was found is kept in build/service.json, part by part; `--write` puts what is there into the page.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from .postgres import NotInstalled, drop_connections, new_database, postgres
from .service_page import write

ROOT: Final = Path(__file__).parent.parent
KEPT: Final = ROOT / "build/service.json"
PARTS: Final = ("latency", "clients", "soak", "postgres", "disk")
FIXTURES: Final = ROOT / "tests/tracer/fixtures"
SMALL: Final = ("sizes.pt2", "data.pt2", "regions.pt2", "bert.pt2", "resnet.pt2", "unet.pt2")
SETTINGS: Final = {
    "LOG_LEVEL": "warning",
    "CLIENT_QUEUE_LIMIT": "100000",
    "QUEUE_LIMIT": "100000",
    "LEASE_S": "5",
    "DRAIN_S": "2",
    "KERNELS": "false",
}


class Server:
    """`anyshape serve` in a folder, which may be killed and started again."""

    def __init__(self, folder: Path, workers: int, **settings: str) -> None:
        self.folder, self.workers, self.settings = folder, workers, settings
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        options = ["--port", str(self.port), "--workers", str(self.workers)]
        environment = {f"ANYSHAPE_SERVICE_{k}": v for k, v in {**SETTINGS, **self.settings}.items()}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "anyshape.typecheck", "serve", *options],
                cwd=self.folder, stderr=log, env={**os.environ, **environment},
            )  # fmt: skip
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/readyz").status_code == 200:
                    return
            time.sleep(0.1)
        raise SystemExit((self.folder / "log").read_text()[-2000:])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def children(self) -> list[int]:
        """The processes of the workers."""
        found = []
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == self.process.pid:
                    found.append(int(folder.name))
        return found

    def memory_mb(self) -> float:
        """Returns the memory of the service itself, without its workers."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextlib.contextmanager
def server(workers: int = 2, **settings: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="anyshape-bench-") as folder:
        running = Server(Path(folder), workers, **settings)
        try:
            yield running
        finally:
            running.stop()


# ---- what is sent


def program(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def large_program(blocks: int) -> bytes:
    """A transformer of some thousand calls, recorded."""
    import torch

    from anyshape.typecheck.remote.sending import package

    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, blocks, enable_nested_tensor=False)
    return package(model, "src: float32[b, t, 64]").content


async def submit(client: httpx.AsyncClient, content: bytes, assume: Sequence[str] = ()) -> httpx.Response:
    fields = {"assume": list(assume)} if assume else {}
    return await client.post("/v1/checks", files={"model": ("m", content)}, data=fields)


async def answered(client: httpx.AsyncClient, content: bytes, assume: Sequence[str] = ()) -> str:
    """From submission to report; the verdict."""
    asked = await submit(client, content, assume)
    asked.raise_for_status()
    check = asked.json()
    while check["state"] in ("queued", "running"):
        check = (await client.get(f"/v1/checks/{check['id']}", params={"wait": 30})).json()
    report = await client.get(f"/v1/checks/{check['id']}/report")
    report.raise_for_status()
    verdict: str = report.json()["verdict"]
    return verdict


# ---- latency


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """In milliseconds."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"p50_ms": cuts[49] * 1e3, "p95_ms": cuts[94] * 1e3, "p99_ms": cuts[98] * 1e3}


async def timed(count: int, at_once: int, ask: Callable[[int], Awaitable[Any]]) -> dict[str, float]:
    """So many questions, so many of them at a time."""
    seconds: list[float] = []
    numbers = iter(range(count))

    async def one_after_the_other() -> None:
        for number in numbers:
            began = time.perf_counter()
            await ask(number)
            seconds.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
    return {"checks": count, "per_second": count / (time.perf_counter() - began), **percentiles(seconds)}


async def latency(running: Server, scale: float) -> dict[str, Any]:
    small, large = program("bert.pt2"), large_program(24)
    async with httpx.AsyncClient(base_url=running.url, timeout=120) as client:
        for content in (small, large):
            await answered(client, content)

        async def new(content: bytes, symbol: str, number: int) -> str:
            return await answered(client, content, [f"{symbol} <= {number + 100}"])

        return {
            "large_kb": len(large) // 1000,
            "cached": await timed(int(400 * scale), 4, lambda n: answered(client, small)),
            "small": await timed(int(200 * scale), 4, lambda n: new(small, "s31", n)),
            "large": await timed(int(40 * scale) or 8, 2, lambda n: new(large, "t", n)),
        }


# ---- a thousand clients


async def clients(running: Server, count: int) -> dict[str, Any]:
    """Each has a connection of its own, submits one of a hundred questions, follows it, and reads the report.
    """
    content = program("sizes.pt2")
    seconds: list[float] = []
    verdicts: dict[str, int] = {}
    refused = 0
    limits = httpx.Limits(max_connections=1)

    async def one(number: int) -> None:
        nonlocal refused
        # Nothing here is encrypted, and certificates take longer to load than a check.
        made = httpx.AsyncClient(base_url=running.url, timeout=300, limits=limits, verify=False)
        async with made as client:
            began = time.perf_counter()
            for pause in range(60):
                asked = await submit(client, content, [f"s27 <= {100 + number % 100}"])
                if asked.status_code not in (429, 503):
                    break
                refused += 1
                await asyncio.sleep(min(pause + 1, 5))
            asked.raise_for_status()
            id = asked.json()["id"]
            async with client.stream("GET", f"/v1/checks/{id}/events") as stream:
                stream.raise_for_status()
                async for _ in stream.aiter_lines():
                    pass
            report = await client.get(f"/v1/checks/{id}/report")
            report.raise_for_status()
            verdict = report.json()["verdict"]
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
            seconds.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(count)))
    took = time.perf_counter() - began
    return {
        "clients": count, "seconds": took, "refused_for_a_while": refused, "verdicts": verdicts,
        "memory_mb": running.memory_mb(), **percentiles(seconds),
    }  # fmt: skip


# ---- the soak


class Soak:
    """Clients that never stop asking, and faults among them."""

    def __init__(self, running: Server, minutes: float, database: str = "") -> None:
        self.running, self.minutes, self.database = running, minutes, database
        self.until = time.monotonic() + minutes * 60
        self.random = random.Random(0)
        self.accepted: dict[str, tuple[str, str]] = {}
        """The program and the assumption of every check that was accepted."""
        self.counts: dict[str, int] = {}
        self.memory: list[float] = []

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    async def run(self) -> dict[str, Any]:
        async with httpx.AsyncClient(base_url=self.running.url, timeout=60) as client:
            tasks = [self.asking(client) for _ in range(6)]
            tasks += [self.damaged(client), self.watching(), self.killing_workers(), self.killing_services()]
            if self.database:
                tasks.append(self.dropping_connections())
            await asyncio.gather(*tasks)
            wrong, lost = await self.verify(client)
        first, last = self.memory[len(self.memory) // 10], statistics.mean(self.memory[-10:])
        return {
            "minutes": self.minutes, **self.counts,
            "accepted": len(self.accepted), "wrong": wrong, "lost": lost,
            "memory_mb_early": first, "memory_mb_late": last, "memory_mb_most": max(self.memory),
        }  # fmt: skip

    @property
    def over(self) -> bool:
        return time.monotonic() > self.until

    async def asking(self, client: httpx.AsyncClient) -> None:
        symbols = {"sizes.pt2": "s27", "bert.pt2": "s31", "resnet.pt2": "s77", "unet.pt2": "s77"}
        while not self.over:
            name = self.random.choice([*symbols])
            assume = f"{symbols[name]} <= {self.random.randint(8, 400)}"
            try:
                asked = await submit(client, program(name), [assume])
                if asked.status_code in (200, 202):
                    self.accepted[asked.json()["id"]] = name, assume
                    self.count("answered at once" if asked.status_code == 200 else "submitted")
                    if self.random.random() < 0.3:
                        await client.get(f"/v1/checks/{asked.json()['id']}", params={"wait": 5})
                else:
                    self.count(f"answered {asked.status_code}")
                    await asyncio.sleep(0.2)
            except httpx.TransportError:
                self.count("connections that broke")
                await asyncio.sleep(0.2)
            await asyncio.sleep(self.random.random() * 0.2)

    async def damaged(self, client: httpx.AsyncClient) -> None:
        """What is no program, is cut off, or has its bytes changed: it is told, or ends in the worker."""
        while not self.over:
            content = bytearray(program(self.random.choice(SMALL)))
            match self.random.randrange(3):
                case 0:
                    del content[self.random.randrange(len(content)) :]
                case 1:
                    for _ in range(20):
                        content[self.random.randrange(len(content))] = self.random.randrange(256)
                case 2:
                    content = bytearray(self.random.randbytes(2000))
            with contextlib.suppress(httpx.TransportError):
                status = (await submit(client, bytes(content))).status_code
                self.count("damaged uploads")
                if status not in (200, 202, 413, 422, 429, 503):
                    self.count(f"damaged uploads answered {status}")
            await asyncio.sleep(0.3)

    async def watching(self) -> None:
        while not self.over:
            with contextlib.suppress(OSError, ValueError, IndexError):
                self.memory.append(self.running.memory_mb())
            await asyncio.sleep(1)

    async def killing_workers(self) -> None:
        while not self.over:
            await asyncio.sleep(self.random.uniform(3, 9))
            for pid in self.running.children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, self.random.choice((signal.SIGKILL, signal.SIGSEGV)))
                    self.count("workers killed")

    async def killing_services(self) -> None:
        while not self.over:
            await asyncio.sleep(self.random.uniform(15, 30))
            if self.over:
                return
            if self.random.random() < 0.7:
                await asyncio.to_thread(self.running.kill)
                self.count("services killed")
            else:
                await asyncio.to_thread(self.running.stop)
                self.count("services stopped")
            await asyncio.to_thread(self.running.start)

    async def dropping_connections(self) -> None:
        while not self.over:
            await asyncio.sleep(self.random.uniform(2, 8))
            await asyncio.to_thread(drop_connections, self.database)
            self.count("times all connections to the database were dropped")

    async def verify(self, client: httpx.AsyncClient) -> tuple[int, int]:
        """Returns the numbers of accepted checks with a wrong answer, and of those without one."""
        from anyshape.typecheck import check

        expected: dict[tuple[str, str], Any] = {}
        wrong = lost = 0
        for id, (name, assume) in self.accepted.items():
            found = (await client.get(f"/v1/checks/{id}")).json()
            while found.get("state") in ("queued", "running"):
                found = (await client.get(f"/v1/checks/{id}", params={"wait": 30})).json()
            if found.get("state") == "failed" and found["failure"]["kind"] == "crash":
                self.count("given up after two kills")
                continue
            if found.get("state") != "done":
                lost += 1
                continue
            report = (await client.get(f"/v1/checks/{id}/report")).json()
            if (name, assume) not in expected:
                expected[name, assume] = check(FIXTURES / name, assume=assume).to_json()
            right = expected[name, assume]
            wrong += any(report[key] != right[key] for key in ("verdict", "accepts", "dims", "shapes"))
        return wrong, lost


def full_disk(minutes: float) -> dict[str, Any]:
    """A store whose disk has no room: what cannot be kept is refused, what was accepted before is answered.

    The disk is full by the limit that the system puts on the size of a file.
    """
    import resource

    most = 600_000
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    accepted: list[str] = []
    codes: dict[int, int] = {}
    with tempfile.TemporaryDirectory(prefix="anyshape-bench-") as folder:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        try:
            running = Server(Path(folder), 1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        with httpx.Client(base_url=running.url, timeout=60) as client:
            until = time.monotonic() + minutes * 60
            while time.monotonic() < until and codes.get(503, 0) < 10:
                name = SMALL[len(accepted) % len(SMALL)]
                files = {"model": ("m", program(name))}
                data = {"budget_s": str(20 + len(accepted) / 100)}
                answer = client.post("/v1/checks", files=files, data=data)
                codes[answer.status_code] = codes.get(answer.status_code, 0) + 1
                if answer.status_code in (200, 202):
                    accepted.append(answer.json()["id"])
            healthy = client.get("/healthz").status_code
        running.kill()
        running.start()  # with room again
        with httpx.Client(base_url=running.url, timeout=90) as client:
            waits = {"params": {"wait": 60}}
            states = [client.get(f"/v1/checks/{id}", **waits).json()["state"] for id in accepted]
            ended = states.count("done")
        running.stop()
    return {"accepted": len(accepted), "answered in the end": ended, "codes": codes, "healthz": healthy}


# ---- the command


def measure(part: str, options: argparse.Namespace) -> dict[str, Any]:
    """One part. Raises NotInstalled."""
    if part == "disk":
        return full_disk(1.0)
    if part == "postgres":
        with postgres() as url, server(DATABASE=(database := new_database(url))) as running:
            return asyncio.run(Soak(running, options.minutes / 2, database).run())
    with server() as running:
        if part == "latency":
            return asyncio.run(latency(running, options.scale))
        if part == "clients":
            return asyncio.run(clients(running, options.clients))
        return asyncio.run(Soak(running, options.minutes).run())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--minutes", type=float, default=4.0, help="of the soak (4)")
    parser.add_argument("--clients", type=int, default=1000, help="at once (1000)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of checks that are timed")
    parser.add_argument("--write", action="store_true", help="write docs/service.md anew")
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    bad = []
    for part in (options.only,) if options.only else PARTS:
        around = {"day": time.strftime("%Y-%m-%d"), "cpus": os.cpu_count(), "load": os.getloadavg()[0]}
        try:
            found[part] = measure(part, options) | around
        except NotInstalled as reason:
            print(f"{part}: {reason}", file=sys.stderr)
            continue
        print(f"{part}: {json.dumps(found[part], indent=2)}", flush=True)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(found, indent=2))
        bad += [f"{part}: {found[part][what]} {what}" for what in ("lost", "wrong") if found[part].get(what)]
    if options.write:
        if missing := [part for part in PARTS if part not in found]:
            sys.exit(f"not measured yet: {', '.join(missing)}")
        write(found)
    if bad:
        sys.exit("; ".join(bad))


if __name__ == "__main__":
    main()
