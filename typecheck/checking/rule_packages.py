"""Rules that installed packages bring for operators of their own.

A package announces them by an entry point of the group `anyshape.rules`, named as the namespace of its
operators:

    [project.entry-points."anyshape.rules"]
    mylib = "mylib.shapes:RULES"

where `RULES` has a rule for each `"mylib::operator"`. A package is imported when a program first calls an
operator of its namespace, and never before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ...constraints.engine.packages import brought
from ...constraints.engine.ruleset import BadRules, Rule

GROUP = "anyshape.rules"


def packaged_rule(operator: str) -> Rule | None:
    """The rule that an installed package has for `namespace::operator`, if there is one.

    Raises BadRules where the package of that namespace does not keep to what its entry point promises.
    """
    namespace, separator, _ = operator.partition("::")
    return _rules_of(namespace).get(operator) if separator else None


@cache
def _rules_of(namespace: str) -> Mapping[str, Rule]:
    if (found := brought(GROUP, namespace, "rules")) is None:
        return {}
    table, told, hint = found
    if not isinstance(table, Mapping):
        raise BadRules(f"{told} is {type(table).__name__}, not a table of rules", hint)
    for name, rule in table.items():
        if not isinstance(name, str) or not name.startswith(f"{namespace}::"):
            raise BadRules(f"{told} has a rule for {name!r}, not for an operator of {namespace}", hint)
        if not callable(rule):
            raise BadRules(f"{told} must give a function as the rule of {name}", hint)
    return {name: rule if isinstance(rule, Rule) else Rule.of(rule) for name, rule in table.items()}
