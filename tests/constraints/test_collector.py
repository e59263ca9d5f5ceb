"""The collector rests inside, and is afterwards as it was before."""

from __future__ import annotations

import gc

import pytest

from anyshape.constraints.engine.collector import collector_at_rest


def test_rests_and_resumes() -> None:
    assert gc.isenabled()
    with collector_at_rest():
        assert not gc.isenabled()
        with collector_at_rest():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_resumes_after_an_error() -> None:
    with pytest.raises(KeyError), collector_at_rest():
        raise KeyError
    assert gc.isenabled()


def test_stays_off_for_who_had_turned_it_off() -> None:
    gc.disable()
    try:
        with collector_at_rest():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
