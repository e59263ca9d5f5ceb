"""Cores are minimal, chains name the steps that change the sizes in question, parts name their lines."""

from __future__ import annotations

import pytest
from models.broken import BROKEN
from models.entry import Broken

from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.formula import all_of, negate
from anyshape.solver.decide import Core, Decision, decide
from anyshape.solver.explain import SHORT, Flow, imposed
from anyshape.solver.tactics.judge import Judge
from anyshape.typecheck.checking.api import examine

REFUTED = [entry for entry in BROKEN if entry.verdict == "refuted"]
REFINED = [entry for entry in BROKEN if entry.verdict == "refined"]


def decided(entry: Broken) -> Decision:
    return decide(examine(entry.build(), entry.inputs, entry.assume, replay=False).system)


def is_minimal(core: Core) -> bool:
    """Do the members contradict each other, no longer if any one is left out?"""
    members = [*core.assumptions, *(r.needs for r in core.requirements)]
    without = [members[:i] + members[i + 1 :] for i in range(len(members))]
    asked = [Judge().satisfiable(some) for some in (members, *without)]
    return asked[0] == "unsat" and set(asked[1:]) == {"sat"}


@pytest.mark.parametrize("entry", REFUTED, ids=lambda entry: entry.name)
def test_cores_are_minimal(entry: Broken) -> None:
    cores = decided(entry).cores
    assert cores
    assert all(map(is_minimal, cores))


def test_a_core_of_several_lines_is_minimal() -> None:
    import torch

    def target(x: torch.Tensor) -> torch.Tensor:
        a = x.view(-1, 2)
        b = x[1:].view(-1, 2)
        return x.view(-1, 4).sum() + a.sum() + b.sum()

    (core,) = decide(examine(target, "x: [n]", replay=False).system).cores
    assert len(core.requirements) == 2
    assert is_minimal(core)


def test_a_core_with_a_member_too_many_is_seen() -> None:
    one, other = (decided(entry).cores[0] for entry in REFUTED[:2])
    assert is_minimal(one)
    assert not is_minimal(Core((*one.requirements, *other.requirements), ()))


def test_the_chain_tells_where_a_number_comes_from() -> None:
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 6, 5)
            self.fc = nn.Linear(400, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.conv(x))
            x = x.flatten(1)
            return self.fc(x)

    examined = examine(Net(), "x: [b, 1, 8, 8]", replay=False)
    (core,) = decide(examined.system).cores
    (path,) = examined.system.paths
    steps = Flow(path, default_rules, examined.spec.domain).chain(core.requirements)
    calls = [(path.program.nodes[s.node].op, s.axes) for s in steps if s.node is not None and not s.passed]
    assert calls == [("conv2d", (1, 2, 3)), ("flatten", (1,))]  # not the batch
    passed = [path.program.nodes[s.node].op for s in steps if s.node is not None and s.passed]
    assert passed == ["relu"]
    names = {i.id: i.name for i in path.program.inputs}
    assert [names[s.value] for s in steps if s.node is None and not s.passed] == ["x", "fc.weight"]


@pytest.mark.parametrize("entry", BROKEN, ids=lambda entry: entry.name)
def test_chains_are_short_and_in_order(entry: Broken) -> None:
    examined = examine(entry.build(), entry.inputs, entry.assume, replay=False)
    for finding in examined.report.findings:
        told = [link.node for link in finding.chain if link.node is not None]
        assert told == sorted(told)
        assert sum(not link.passed for link in finding.chain) <= 2 * SHORT
        assert finding.node is None or all(node < finding.node for node in told)


@pytest.mark.parametrize("entry", REFINED, ids=lambda entry: entry.name)
def test_the_lines_named_impose_their_part(entry: Broken) -> None:
    decision = decided(entry)
    judge, given = Judge(), decision.domain.assumptions
    found = [*imposed(judge, decision.domain, decision.accepted, decision.residual)]
    assert all_of(part.condition for part in found) == decision.accepted
    for part in found:
        against = negate(part.condition)
        needs = [r.needs for r in part.requirements]
        assert judge.satisfiable((*given, *needs, against)) == "unsat"
        for left_out in needs:
            rest = [n for n in needs if n is not left_out]
            assert judge.satisfiable((*given, *rest, against)) == "sat"
        assert part.refused is None or not decision.holds(part.refused)


def test_one_line_on_two_ways_is_one_matter() -> None:
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(5, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[0] > 4:
                x = x.relu()
            return self.fc(x)

    (finding,) = examine(Net(), "x: [b, 7]", replay=False).report.findings
    assert finding.message == "the last size of the input is 7, but the weight takes 5 features"
    assert (finding.condition, finding.conflict) == ("", ())
