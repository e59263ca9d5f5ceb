"""The queue and what came of it: every change of a work or a job is one transaction here.

Whoever asks for a work or gives it up holds its row meanwhile, so that of two who do so at once one comes
after the other.

Whose turn it is: works carry a tag, and of the highest priority the smallest tag is next. A client's works
get tags one after the other, beginning with that of whoever is at the head of the queue. So clients take
turns, however many works one of them has sent (start-time fair queueing, with each work of the same length).
"""

from __future__ import annotations

import json
import secrets
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.orm import Session

from .database import Database
from .tables import Job, Model, State, Work

EXPIRED: Final = 500
"""Works that are deleted in one transaction."""
MAX_STARTS: Final = 5
"""A work that is begun so often and never ends takes the service down with it."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A request to the store: a model, a question about it, and its name."""

    tenant: str
    name: str
    form: str
    content: bytes
    model: str
    """The digest of the content; where `content` is empty, the store has it already."""
    digest: str
    """Of everything that the answer depends on."""
    question: Mapping[str, Any]
    priority: int = 0
    token: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """A work to do, as it is handed to a worker."""

    digest: str
    form: str
    content: bytes
    question: Mapping[str, Any]
    failures: int
    created: float
    """Since when it has been known, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A job with its work."""

    job: Job
    work: Work
    form: str
    """Of its model."""

    @property
    def state(self) -> State:
        return State.CANCELLED if self.job.cancelled else State(self.work.state)

    @property
    def problem(self) -> dict[str, str] | None:
        return json.loads(self.work.problem) if self.work.problem and self.state is State.FAILED else None


_ENTRIES: Final = (
    sa.select(Job, Work, Model.form)
    .join(Work, Job.work == Work.digest)
    .join(Model, Work.model == Model.digest)
)


class QueueFull(Exception):
    """No more is taken in; `waiting` works are before it."""

    def __init__(self, waiting: int, whose: str) -> None:
        self.waiting = waiting
        super().__init__(f"{waiting} checks {whose} are waiting already")


class Store:
    """All that is kept, of a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # ---- asking

    def submit(self, asked: Submission, limit: int, client_limit: int) -> tuple[Entry, bool]:
        """The job, the same for the same question, and whether it is new. Raises QueueFull, LookupError."""
        content = b"" if self.has_model(asked.model) else zlib.compress(asked.content, 6)
        for attempt in (1, 2, 3):
            try:
                with self.database.write() as session:
                    return self._submit(session, asked, content, limit, client_limit)
            except sa.exc.IntegrityError:  # somebody asked the same at the same moment
                if attempt == 3:
                    raise
        raise AssertionError("unreachable")

    def _submit(
        self, session: Session, asked: Submission, content: bytes, limit: int, client_limit: int
    ) -> tuple[Entry, bool]:
        now = time.time()
        work = session.get(Work, asked.digest, with_for_update=True)
        if work is None or _asks_again(work):
            self._has_room(session, asked.tenant, limit, client_limit)
            if work is None:
                _keep(session, asked, content, now)
                question = json.dumps(asked.question)
                work = Work(digest=asked.digest, model=asked.model, question=question, created=now)
            _queue(session, work, asked.tenant, asked.priority)
            session.add(work)
        elif work.state == State.QUEUED and asked.priority > work.priority:
            _queue(session, work, asked.tenant, asked.priority)
        session.flush()
        job = session.scalar(sa.select(Job).where(Job.tenant == asked.tenant, Job.work == asked.digest))
        new = job is None
        if job is None:
            job = Job(
                id=secrets.token_hex(10), tenant=asked.tenant, token=asked.token, name=asked.name,
                work=asked.digest, created=now,
            )  # fmt: skip
            session.add(job)
        job.cancelled = False
        session.flush()
        return Entry(job, work, asked.form), new

    def _has_room(self, session: Session, client: str, limit: int, client_limit: int) -> None:
        queued = sa.select(sa.func.count()).select_from(Work).where(Work.state == State.QUEUED)
        waiting = session.scalar(queued) or 0
        if waiting >= limit:
            raise QueueFull(waiting, "of all clients")
        own = session.scalar(queued.where(Work.client == client)) or 0
        if own >= client_limit:
            raise QueueFull(own, "of yours")

    def has_model(self, digest: str) -> bool:
        with self.database.read() as session:
            return session.scalar(sa.select(Model.digest).where(Model.digest == digest)) is not None

    # ---- reading

    def job(self, tenant: str, id: str, *, answer: bool = False) -> Entry | None:
        """A job of the tenant's; of others it has none."""
        with self.database.read() as session:
            asked = _ENTRIES.where(Job.id == id, Job.tenant == tenant)
            if answer:
                asked = asked.options(sa.orm.undefer(Work.answer))
            row = session.execute(asked).first()
            return None if row is None else Entry(*row)

    def jobs(
        self, tenant: str, *, states: Iterable[str] = (), verdicts: Iterable[str] = (), name: str = "",
        before: str = "", limit: int = 50,
    ) -> list[Entry]:
        """The tenant's jobs, latest first, from the one after `before` on.

        Raises LookupError where that one is gone.
        """
        asked = _ENTRIES.where(Job.tenant == tenant)
        if wanted := [*states]:
            alive = sa.and_(Job.cancelled.is_(False), Work.state.in_(wanted))
            asked = asked.where(sa.or_(alive, Job.cancelled) if State.CANCELLED in wanted else alive)
        if found := [*verdicts]:
            asked = asked.where(Work.verdict.in_(found), Job.cancelled.is_(False))
        if name:
            asked = asked.where(Job.name.contains(name, autoescape=True))
        with self.database.read() as session:
            if before:
                last = session.get(Job, before)
                if last is None or last.tenant != tenant:
                    raise LookupError(f"there is no check {before} to continue from")
                at = sa.tuple_(sa.literal(last.created), sa.literal(last.id))
                asked = asked.where(sa.tuple_(Job.created, Job.id) < at)
            asked = asked.order_by(Job.created.desc(), Job.id.desc()).limit(limit)
            return [Entry(*row) for row in session.execute(asked)]

    def position(self, work: Work) -> int:
        """Returns the number of works that come before one that waits."""
        earlier = sa.or_(
            Work.priority > work.priority, sa.and_(Work.priority == work.priority, Work.tag < work.tag)
        )
        with self.database.read() as session:
            asked = sa.select(sa.func.count()).select_from(Work).where(Work.state == State.QUEUED, earlier)
            return session.scalar(asked) or 0

    def progress(self, digests: Sequence[str]) -> dict[str, tuple[str, str, str]]:
        """State, step and verdict of works."""
        with self.database.read() as session:
            asked = sa.select(Work.digest, Work.state, Work.step, Work.verdict)
            asked = asked.where(Work.digest.in_(digests))
            return {digest: (state, step, verdict) for digest, state, step, verdict in session.execute(asked)}

    def answer(self, digest: str) -> dict[str, Any]:
        """The answer of a work; nothing where it has none."""
        with self.database.read() as session:
            work = session.get(Work, digest, options=[sa.orm.undefer(Work.answer)])
            return {} if work is None or work.answer is None else answer_of(work)

    def counts(self) -> dict[str, int]:
        """Returns the number of works in each state."""
        with self.database.read() as session:
            rows = session.execute(sa.select(Work.state, sa.func.count()).group_by(Work.state))
            return {state: int(count) for state, count in rows}

    # ---- working

    def take(self, owner: str, lease_s: float) -> Taken | None:
        """The work whose turn it is, which is the owner's from now on; None where none waits."""
        asked = (
            sa.select(Work)
            .where(Work.state == State.QUEUED)
            .order_by(Work.priority.desc(), Work.tag, Work.digest)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        with self.database.read() as session:
            if session.scalar(sa.select(Work.digest).where(Work.state == State.QUEUED).limit(1)) is None:
                return None
        with self.database.write() as session:
            work = session.scalar(asked)
            if work is None:
                return None
            model = session.get_one(Model, work.model)
            work.state, work.owner = State.RUNNING, owner
            work.lease = self.database.clock(session) + lease_s
            work.started, work.starts, work.step = time.time(), work.starts + 1, ""
            question = json.loads(work.question)
            return Taken(work.digest, model.form, model.content, question, work.failures, work.created)

    def renew(self, owner: str, digest: str, lease_s: float, step: str) -> bool:
        """Notes that the owner is alive, and its progress; returns False if the work is no longer its own."""
        with self.database.write() as session:
            until = self.database.clock(session) + lease_s
            renewed = sa.update(Work).where(*_owned(owner, digest)).values(lease=until, step=step)
            return _count(session.execute(renewed)) == 1

    def finish(self, owner: str, digest: str, verdict: str, answer: Mapping[str, Any]) -> bool:
        """Stores an answer; returns False if the work is no longer the owner's, whose answer is then dropped.
        """
        packed = zlib.compress(json.dumps(answer, separators=(",", ":")).encode(), 6)
        return self._end(owner, digest, state=State.DONE, verdict=verdict, answer=packed, problem="")

    def fail(self, owner: str, digest: str, problem: Mapping[str, str]) -> bool:
        """Ends a work without a report."""
        return self._end(owner, digest, state=State.FAILED, problem=json.dumps(problem))

    def _end(self, owner: str, digest: str, **values: Any) -> bool:
        with self.database.write() as session:
            ended = sa.update(Work).where(*_owned(owner, digest))
            values |= {"finished": time.time(), "owner": "", "lease": 0.0, "step": ""}
            changed = session.execute(ended.values(**values))
            return _count(changed) == 1

    def release(self, owner: str, digest: str, *, failed: bool) -> bool:
        """Puts a work back to where it was in the queue."""
        with self.database.write() as session:
            values: dict[str, Any] = {"state": State.QUEUED, "owner": "", "lease": 0.0, "step": ""}
            values |= {"failures": Work.failures + 1} if failed else {"starts": Work.starts - 1}
            changed = session.execute(sa.update(Work).where(*_owned(owner, digest)).values(**values))
            return _count(changed) == 1

    def resume(self, owners_gone: bool = False) -> int:
        """Puts works whose owner is gone back into the queue: those whose lease ran out, or all of them."""
        with self.database.write() as session:
            gone = sa.true() if owners_gone else Work.lease < self.database.clock(session)
            asked = sa.select(Work).where(Work.state == State.RUNNING, gone)
            works = [*session.scalars(asked.with_for_update(skip_locked=True))]
            for work in works:
                work.owner, work.lease, work.step = "", 0.0, ""
                if work.starts >= MAX_STARTS:
                    reason = f"it was started {work.starts} times, and each time the service stopped first"
                    work.state, work.finished = State.FAILED, time.time()
                    work.problem = json.dumps({"kind": "crash", "problem": reason, "hint": ""})
                else:
                    work.state = State.QUEUED
            return len(works)

    # ---- ending

    def cancel(self, tenant: str, id: str) -> Entry | None:
        """Gives a job up; its work goes on as long as another job wants it."""
        with self.database.write() as session:
            job = session.scalar(sa.select(Job).where(Job.id == id, Job.tenant == tenant))
            if job is None:
                return None
            work = session.get_one(Work, job.work, with_for_update=True)
            if not State(work.state).final:
                job.cancelled = True
                session.flush()
                _cancel_unwanted(session, work)
            return Entry(job, work, session.get_one(Model, work.model).form)

    def forget(self, tenant: str, id: str) -> bool:
        """Deletes a job, and what nobody else wants of it."""
        with self.database.write() as session:
            job = session.scalar(sa.select(Job).where(Job.id == id, Job.tenant == tenant))
            if job is None:
                return False
            work = session.get_one(Work, job.work, with_for_update=True)
            session.delete(job)
            session.flush()
            if not State(work.state).final:
                _cancel_unwanted(session, work)
            _sweep(session, [work.digest])
            return True

    def expire(self, days: float) -> int:
        """Deletes some of the works that are finished for so long, with their jobs; says how many.

        Whoever has asked since keeps the answer.
        """
        before = time.time() - days * 86400
        with self.database.write() as session:
            lately = sa.select(Job.id).where(Job.work == Work.digest, Job.created >= before)
            old = sa.select(Work.digest).where(Work.finished < before, ~lately.exists()).limit(EXPIRED)
            digests = [*session.scalars(old.with_for_update(skip_locked=True))]
            session.execute(sa.delete(Job).where(Job.work.in_(digests), Job.created < before))
            _sweep(session, digests)
            return len(digests)


def answer_of(work: Work) -> dict[str, Any]:
    """The answer of a work that is done."""
    assert work.answer is not None
    data: dict[str, Any] = json.loads(zlib.decompress(work.answer))
    return data


# ---- steps of transactions

def _keep(session: Session, asked: Submission, content: bytes, now: float) -> None:
    """The model, unless it is there already. Raises LookupError where it was deleted meanwhile."""
    if session.scalar(sa.select(Model.digest).where(Model.digest == asked.model)) is None:
        if not asked.content:
            raise LookupError("the program was deleted; send it again")
        content, size = content or zlib.compress(asked.content, 6), len(asked.content)
        session.add(Model(digest=asked.model, form=asked.form, content=content, size=size, created=now))
        session.flush()


def _owned(owner: str, digest: str) -> tuple[sa.ColumnElement[bool], ...]:
    return Work.digest == digest, Work.owner == owner, Work.state == State.RUNNING


def _count(result: sa.Result[Any]) -> int:
    assert isinstance(result, sa.CursorResult)
    return result.rowcount


def _asks_again(work: Work) -> bool:
    """Returns whether another attempt is worthwhile: the work was cancelled, or its worker crashed."""
    if work.state == State.CANCELLED:
        return True
    return work.state == State.FAILED and json.loads(work.problem)["kind"] == "crash"


def _queue(session: Session, work: Work, client: str, priority: int) -> None:
    """At the end of the client's own works, and no earlier than whoever is at the head."""
    alike = sa.and_(Work.priority == priority, Work.state == State.QUEUED, Work.digest != work.digest)
    head = session.scalar(sa.select(sa.func.min(Work.tag)).where(alike)) or 0
    own = session.scalar(sa.select(sa.func.max(Work.tag)).where(alike, Work.client == client))
    work.tag = head if own is None else max(head, own + 1)
    work.state, work.client, work.priority = State.QUEUED, client, priority
    work.failures, work.starts, work.owner, work.lease = 0, 0, "", 0.0
    work.started = work.finished = None
    work.step = work.verdict = work.problem = ""


def _cancel_unwanted(session: Session, work: Work) -> None:
    wanted = sa.select(sa.func.count()).select_from(Job)
    if not session.scalar(wanted.where(Job.work == work.digest, Job.cancelled.is_(False))):
        work.state, work.finished, work.owner, work.lease = State.CANCELLED, time.time(), "", 0.0


def _sweep(session: Session, digests: Sequence[str]) -> None:
    """Deletes those of the works that no job is about, and the models that no work is about."""
    wanted = sa.select(Job.work).where(Job.work.in_(digests))
    gone = sa.select(Work.digest, Work.model).where(Work.digest.in_(digests), Work.digest.not_in(wanted))
    rows = [*session.execute(gone)]
    session.execute(sa.delete(Work).where(Work.digest.in_([digest for digest, _ in rows])))
    models = {model for _, model in rows}
    used = sa.select(Work.model).where(Work.model.in_(models))
    session.execute(sa.delete(Model).where(Model.digest.in_(models), Model.digest.not_in(used)))
