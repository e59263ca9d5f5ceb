"""The queue and what is kept, on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from anyshape.typecheck.service.queue import store as module
from anyshape.typecheck.service.queue.database import Database
from anyshape.typecheck.service.queue.store import MAX_STARTS, QueueFull, Store, Submission, answer_of
from anyshape.typecheck.service.queue.tables import Base, Job, Model, State, Work

QUESTION = {"kind": "check", "budget_s": 1.0}


@pytest.fixture
def store(database: Database) -> Store:
    return Store(database)


def submit(store: Store, tenant: str, digest: str, limit: int = 99, own: int = 99, **more: Any) -> Any:
    asked = Submission(tenant, digest, "pt2", b"content", "model", digest, QUESTION, **more)
    return store.submit(asked, limit, own)


def taken(store: Store) -> list[str]:
    """All that wait, in the order of their turns."""
    found = []
    while (work := store.take("me", 30.0)) is not None:
        found.append(work.digest)
    return found


def later(store: Store, seconds: float) -> None:
    """Puts the clock of leases forward."""
    clock = store.database.clock
    store.database.clock = lambda session: clock(session) + seconds  # type: ignore[method-assign]


def test_migrations_make_the_tables_that_the_code_has(database: Database) -> None:
    database.migrate()  # once more is no matter
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_the_same_question_is_one_work_and_one_job_for_each_tenant(store: Store) -> None:
    first, new = submit(store, "a", "x")
    again, newer = submit(store, "a", "x")
    other, newest = submit(store, "b", "x")
    assert (new, newer, newest) == (True, False, True)
    assert first.job.id == again.job.id != other.job.id
    assert taken(store) == ["x"]


def test_tenants_see_their_own_jobs_alone(store: Store) -> None:
    mine = submit(store, "a", "x")[0].job.id
    assert store.job("a", mine) is not None
    assert store.job("b", mine) is None
    assert store.jobs("b") == []
    assert store.cancel("b", mine) is None
    assert not store.forget("b", mine)
    assert store.job("a", mine).state is State.QUEUED  # type: ignore[union-attr]


def test_clients_take_turns_however_much_one_has_sent(store: Store) -> None:
    for number in range(4):
        submit(store, "many", f"m{number}")
    submit(store, "few", "f0")
    submit(store, "few", "f1")
    order = taken(store)
    assert order[:4] in (["f0", "m0", "f1", "m1"], ["m0", "f0", "m1", "f1"], ["f0", "m0", "m1", "f1"],
                         ["m0", "f0", "f1", "m1"])
    assert order[4:] == ["m2", "m3"]


def test_a_client_that_comes_late_does_not_wait_for_all_of_another(store: Store) -> None:
    for number in range(6):
        submit(store, "many", f"m{number}")
    for _ in range(3):
        store.take("me", 30.0)
    submit(store, "late", "l0")
    assert "l0" in taken(store)[:2]


def test_priorities_come_first(store: Store) -> None:
    submit(store, "a", "low", priority=-1)
    submit(store, "a", "normal")
    submit(store, "a", "high", priority=1)
    assert taken(store) == ["high", "normal", "low"]


def test_asking_again_with_a_higher_priority_moves_it_forward(store: Store) -> None:
    submit(store, "a", "x")
    submit(store, "a", "y")
    submit(store, "a", "y", priority=1)
    assert taken(store) == ["y", "x"]


def test_a_full_queue_takes_no_more(store: Store) -> None:
    submit(store, "a", "x", limit=2)
    submit(store, "b", "y", limit=2)
    with pytest.raises(QueueFull):
        submit(store, "c", "z", limit=2)
    assert not submit(store, "a", "x", limit=2)[1]  # what is in there already is no more


def test_one_client_does_not_fill_the_queue(store: Store) -> None:
    submit(store, "a", "x", own=1)
    with pytest.raises(QueueFull, match="of yours"):
        submit(store, "a", "y", own=1)
    submit(store, "b", "y", own=1)


def test_an_answer_is_kept_once(store: Store) -> None:
    job = submit(store, "a", "x")[0].job.id
    store.take("me", 30.0)
    assert not store.finish("somebody else", "x", "proved", {"wrong": 1})
    assert store.finish("me", "x", "proved", {"right": 1})
    assert not store.finish("me", "x", "refuted", {"late": 1})
    entry = store.job("a", job, answer=True)
    assert entry is not None
    assert (entry.state, entry.work.verdict, answer_of(entry.work)) == (State.DONE, "proved", {"right": 1})


def test_a_work_whose_owner_is_gone_is_done_by_another(store: Store) -> None:
    submit(store, "a", "x")
    store.take("gone", 30.0)
    assert store.resume() == 0  # its lease still runs
    later(store, 31.0)
    assert store.resume() == 1
    assert store.take("next", 30.0) is not None
    assert not store.finish("gone", "x", "refuted", {})
    assert not store.renew("gone", "x", 30.0, "solve")
    assert store.finish("next", "x", "proved", {})


def test_an_owner_that_renews_keeps_its_work(store: Store) -> None:
    submit(store, "a", "x")
    store.take("alive", 30.0)
    later(store, 29.0)
    assert store.renew("alive", "x", 30.0, "solve")
    later(store, 2.0)
    assert store.resume() == 0


def test_whose_own_clock_is_ahead_takes_over_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases are measured by one clock, that of the database, or one that nobody sets."""
    submit(store, "a", "x")
    store.take("alive", 30.0)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    assert store.resume() == 0
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    later(store, 31.0)
    assert store.resume() == 1


def test_a_work_that_takes_the_service_down_is_given_up(store: Store) -> None:
    job = submit(store, "a", "x")[0].job.id
    for _ in range(MAX_STARTS):
        assert store.take("me", 30.0) is not None
        store.resume(owners_gone=True)
    entry = store.job("a", job)
    assert entry is not None
    assert entry.state is State.FAILED
    assert "5 times" in entry.problem["problem"]  # type: ignore[index]
    submit(store, "a", "x")  # whoever asks again wants another attempt
    assert taken(store) == ["x"]


def test_what_is_put_back_by_a_stop_is_no_failure(store: Store) -> None:
    submit(store, "a", "x")
    store.take("me", 30.0)
    assert store.release("me", "x", failed=False)
    work = store.take("me", 30.0)
    assert work is not None
    assert work.failures == 0
    assert store.release("me", "x", failed=True)
    assert store.take("me", 30.0).failures == 1  # type: ignore[union-attr]


def test_cancelling_ends_what_nobody_else_wants(store: Store) -> None:
    mine, theirs = submit(store, "a", "x")[0].job.id, submit(store, "b", "x")[0].job.id
    store.take("me", 30.0)
    assert store.cancel("a", mine).state is State.CANCELLED  # type: ignore[union-attr]
    assert store.renew("me", "x", 30.0, "")  # the other one still wants it
    store.cancel("b", theirs)
    assert not store.renew("me", "x", 30.0, "")
    assert not store.finish("me", "x", "proved", {})
    submit(store, "a", "x")
    assert store.job("a", mine).state is State.QUEUED  # type: ignore[union-attr]


def test_what_is_forgotten_is_gone_once_nobody_has_it(store: Store) -> None:
    mine, theirs = submit(store, "a", "x")[0].job.id, submit(store, "b", "x")[0].job.id
    store.take("me", 30.0)
    store.finish("me", "x", "proved", {})
    assert store.forget("a", mine)
    assert store.job("b", theirs) is not None
    assert store.forget("b", theirs)
    with store.database.read() as session:
        for table in (Job, Work, Model):
            assert session.scalar(sa.select(sa.func.count()).select_from(table)) == 0


def test_old_answers_expire(store: Store) -> None:
    job = submit(store, "a", "x")[0].job.id
    submit(store, "a", "y")
    store.take("me", 30.0)
    store.finish("me", "x", "proved", {})
    assert store.expire(1.0) == 0
    time.sleep(0.02)
    assert store.expire(0.01 / 86400) == 1
    assert store.job("a", job) is None
    assert [entry.work.digest for entry in store.jobs("a")] == ["y"]


def test_what_is_asked_for_again_does_not_expire_nor_keep_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXPIRED", 2)
    for digest in "abcdef":
        submit(store, "first", digest)
        store.take("me", 30.0)
        store.finish("me", digest, "proved", {})
    time.sleep(0.02)
    before = time.time()
    time.sleep(0.02)
    for digest in "abc":
        submit(store, "second", digest)
    found = []
    while count := store.expire((time.time() - before) / 86400):
        found.append(count)
    assert found == [2, 1]
    assert [entry.work.digest for entry in store.jobs("second")] == ["c", "b", "a"]


def test_a_page_after_one_that_is_gone_is_told(store: Store) -> None:
    mine, theirs = submit(store, "a", "x")[0].job.id, submit(store, "b", "y")[0].job.id
    for before in (theirs, "0" * 20):
        with pytest.raises(LookupError, match="to continue from"):
            store.jobs("a", before=before)
    assert store.jobs("a", before=mine) == []


@pytest.mark.parametrize("giving_up", [Store.cancel, Store.forget])
def test_what_is_asked_for_while_another_gives_it_up_is_not_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch, giving_up: Any
) -> None:
    mine = submit(store, "a", "x")[0].job.id
    store.take("me", 30.0)
    marked, unwanted = threading.Event(), module._cancel_unwanted

    def slowly(session: Any, work: Work) -> None:
        unwanted(session, work)
        session.flush()
        marked.set()
        time.sleep(0.3)

    monkeypatch.setattr(module, "_cancel_unwanted", slowly)
    thread = threading.Thread(target=giving_up, args=(store, "a", mine))
    thread.start()
    assert marked.wait(10)
    theirs = submit(store, "b", "x")[0].job.id
    thread.join()
    assert store.job("b", theirs).state is State.QUEUED  # type: ignore[union-attr]
    assert taken(store) == ["x"]


def test_an_answer_that_comes_while_it_is_given_up_is_dropped_or_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never both: a check that is cancelled has no answer, and one that has an answer is not cancelled."""
    mine = submit(store, "a", "x")[0].job.id
    store.take("me", 30.0)
    marked, unwanted, kept = threading.Event(), module._cancel_unwanted, []

    def slowly(session: Any, work: Work) -> None:
        marked.set()
        time.sleep(0.3)
        unwanted(session, work)

    monkeypatch.setattr(module, "_cancel_unwanted", slowly)
    thread = threading.Thread(target=store.cancel, args=("a", mine))
    thread.start()
    assert marked.wait(10)
    kept.append(store.finish("me", "x", "proved", {}))
    thread.join()
    entry = store.job("a", mine)
    assert entry is not None
    assert (kept, entry.state, entry.work.verdict) == ([False], State.CANCELLED, "")


def test_lists_have_pages_and_filters(store: Store) -> None:
    for number in range(5):
        submit(store, "a", f"w{number}")
    store.take("me", 30.0)
    store.finish("me", "w0", "proved", {})
    names = [entry.job.name for entry in store.jobs("a", limit=3)]
    assert names == ["w4", "w3", "w2"]
    last = store.jobs("a", limit=3)[-1].job.id
    assert [entry.job.name for entry in store.jobs("a", limit=3, before=last)] == ["w1", "w0"]
    assert [entry.job.name for entry in store.jobs("a", states=["done"])] == ["w0"]
    assert [entry.job.name for entry in store.jobs("a", verdicts=["proved"])] == ["w0"]
    assert [entry.job.name for entry in store.jobs("a", name="w3")] == ["w3"]
    assert store.jobs("a", name="%") == []


def test_many_at_once_take_each_work_once(store: Store) -> None:
    for number in range(24):
        submit(store, f"client {number % 3}", f"w{number}")
    found: list[str] = []

    def take(owner: str) -> None:
        while (work := store.take(owner, 30.0)) is not None:
            found.append(work.digest)
            assert store.finish(owner, work.digest, "proved", {})

    threads = [threading.Thread(target=take, args=(f"owner {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(f"w{n}" for n in range(24))


def test_many_may_ask_the_same_at_once(store: Store) -> None:
    ids: list[str] = []
    threads = [
        threading.Thread(target=lambda: ids.append(submit(store, "a", "x")[0].job.id)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len({*ids}) == 1
