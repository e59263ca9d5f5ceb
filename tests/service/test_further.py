"""What else is asked of a program that was sent: its branches, and the types that fit it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from serving import FIXTURES, Running, free_port

from anyshape.typecheck.gradual.branching import branches
from anyshape.typecheck.gradual.migrating import migrate
from anyshape.typecheck.remote.client import Client, ServiceError, _result
from anyshape.typecheck.service.work.questions import Question, answer

SPEC = "x: float32[b, h]"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    service = Running(tmp_path_factory.mktemp("service"), free_port())
    with Client(str(service.client.base_url)) as client:
        yield client
    service.end()


def splits(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 7:
        return x.view(x.shape[0], 2, -1).sum(1)
    if x.shape[1] % 3 == 0:
        x = x.relu()
    return x


def needs_first(x: torch.Tensor) -> torch.Tensor:
    """Where the condition is met, b is 4 already."""
    x = x + torch.ones(4, 1)
    if x.shape[0] == 4:
        return x
    return x.sum(0)


def straight(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(x, torch.ones(4, 8)).relu()


def told(found: Any) -> tuple[Any, ...]:
    """A condition, without what only the program itself shows."""
    return tuple(found[key] for key in ("line", "condition", "outcome", "true", "false", "on_data", "missed"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "target, assume, outcomes",
    [
        (splits, (), [None, None]),
        (splits, ("b <= 7",), [False, None]),
        (splits, ("b >= 9",), [True]),
        (needs_first, ("b >= 9",), []),  # no input gets there
        (needs_first, ("b != 1",), [True]),  # what comes before has decided it
        (straight, (), []),
    ],
)
def test_branches_are_those_of_the_program(
    client: Client, target: Callable[..., Any], assume: tuple[str, ...], outcomes: list[bool | None]
) -> None:
    found = client.branches(client.submit(target, SPEC, assume).id)
    assert [one["outcome"] for one in found] == outcomes
    expected = [one.to_json() for one in branches(target, SPEC, assume)]
    assert [told(one) for one in found] == [told(one) for one in expected]
    assert all(one["replayed"] is None for one in found)


def test_two_sub_domains_are_told(client: Client) -> None:
    id = client.submit(splits, SPEC).id
    first, second = client.branches(id)
    assert first["condition"] == "x.shape[0] > 7"
    assert (first["true"]["where"], first["false"]["where"]) == ("8 <= b", "b <= 7")
    assert first["true"]["at"]["b"] >= 8 > first["false"]["at"]["b"]
    assert "h % 3 == 0" in second["true"]["where"]
    narrowed, _ = client.branches(client.variant(id, assume=["b <= 7"]).id)
    assert narrowed["outcome"] is False


@pytest.mark.parametrize("target, assume", [(splits, ()), (straight, ()), (needs_first, ("b >= 2",))])
def test_types_are_those_that_migrate_finds(
    client: Client, target: Callable[..., Any], assume: tuple[str, ...]
) -> None:
    found = client.migration(client.submit(target, SPEC, assume).id)
    expected = migrate(target, SPEC, assume).to_json()
    assert found == {key: expected[key] for key in ("static", "principal", "types")}
    assert found["static"]
    assert found["types"]["x"] == expected["types"]["x"]


def test_a_saved_program_has_types_and_no_branches(client: Client) -> None:
    id = client.submit(FIXTURES / "resnet.pt2").id
    expected = migrate(FIXTURES / "resnet.pt2").to_json()
    assert client.migration(id) == {key: expected[key] for key in ("static", "principal", "types")}
    assert client.branches(id) == []


def test_types_have_to_be_asked_for(client: Client) -> None:
    asked = client.submit(straight, SPEC)
    client.report(asked.id)
    with pytest.raises(ServiceError, match="kind migrate"):
        _result(client._blocking._json("GET", f"/v1/checks/{asked.id}/migration"))


def test_a_program_that_never_runs_has_no_types() -> None:
    def never(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x[:, :1], torch.ones(4, 8))

    from anyshape.typecheck.remote.sending import package

    found = answer("recorded", package(never, SPEC).content, Question("migrate"), lambda step: None)
    assert found["verdict"] == "refuted"
    assert found["migration"] == {"static": None, "principal": {}, "types": {}}
