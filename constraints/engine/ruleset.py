"""Rules of operators, with the names of their parameters, and families of rules by the operators' names."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from ..contents.requirements.widths import has_64_bits, require_64_bits
from ..ir.language import Context, Dynamic, Number, Tensor, Value
from ..ir.opnames import IGNORED, SYNONYMS
from ..ir.release import Release
from ..terms.dims import Term
from ..terms.formula import And, Compare, Or
from .lifting import Named, Reach

RuleFunction: TypeAlias = Callable[..., Any]
"""`rule(context, *arguments) -> Value`; the names of its parameters are those of torch's Python API."""
PER_DIM = frozenset("stride padding output_padding kernel_size dilation".split())
"""Names of parameters that take a number for each dim."""
SIZES = PER_DIM | frozenset(
    "size shape sizes pad output_size length num_samples dim dims k repeats shifts".split()
)
"""Names of parameters that take sizes, or other integers, in rules that take no tensor there."""
COUNT: Final = re.compile(r"(int|Dim)( \| (int|Dim|None))*")
"""Annotations of parameters that take an integer."""
_WITH_INTEGERS: Final = (int, Term, tuple)
"""Types of arguments that contain integers."""


class BadCall(TypeError):
    """Raised for arguments that a rule's signature does not accept."""


class BadRules(Exception):
    """Raised for third-party rules that cannot be used; `hint` says what to do about it."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


class RuleFailed(BaseException):
    """Raised where a rule raises an exception other than a refusal: a defect of the rule, whatever the sizes
    are.

    It is no Exception, so that no `except Exception` of a program takes it for a refusal.
    """

    def __init__(self, op: str, rule: Rule, error: Exception) -> None:
        told = f"{type(error).__name__}: {error}".rstrip(": ")
        super().__init__(f"{RULE_DEFECT} `{op}` in package `{rule.package}` failed: {told}")


RULE_DEFECT: Final = "the rule of"
"""The beginning of the message of every `RuleFailed`."""
_OWN_PACKAGE: Final = __name__.partition(".")[0]
_RETURNED: Final = (Tensor, Term, Compare, And, Or, Number, Dynamic, int, float, complex, str)
"""The types of the parts of a result."""


@dataclass(frozen=True)
class Rule:
    """A rule with the names and defaults of its parameters, the context aside."""

    function: RuleFunction
    positional: tuple[str, ...]
    variadic: str
    """The parameter that takes the remaining positional arguments (`permute(*dims)`), or an empty text."""
    keywords: frozenset[str]
    """Every parameter, which all may be given by name."""
    required: frozenset[str]
    tensors: frozenset[str] = frozenset()
    """The parameters that may be tensors by their annotation."""
    integers: frozenset[str] = frozenset()
    """The parameters that are annotated as integers."""
    floats: frozenset[str] = frozenset()
    """The parameters that are annotated as floats, to which integers are converted; and the numbers of a new
    tensor, whose dtype decides.
    """
    reach: Callable[[Named], Reach | None] = lambda named: None
    """Returns how far from either end of a shape the rule looks, given the named arguments; None where it
    needs all of it. It is used for tensors of unknown rank only.
    """
    of_sparse: Rule | None = None
    """The rule for calls with a sparse argument, if such calls are supported."""
    limits: tuple[Callable[[Context, Named], None], ...] = ()
    """They require that numbers among the arguments lie in their ranges, before the rule is asked."""
    _names: dict[tuple[Any, ...], tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)
    """The names of all arguments of a call, by how many it gives by position and the names of the others."""

    @classmethod
    def of(cls, function: RuleFunction) -> Rule:
        _, *rest = inspect.signature(function).parameters.values()
        return cls(
            function,
            tuple(p.name for p in rest if p.kind is p.POSITIONAL_OR_KEYWORD),
            next((p.name for p in rest if p.kind is p.VAR_POSITIONAL), ""),
            frozenset(p.name for p in rest),
            frozenset(p.name for p in rest if p.default is p.empty and p.kind is not p.VAR_POSITIONAL),
            frozenset(p.name for p in rest if "Tensor" in str(p.annotation)),
            frozenset(p.name for p in rest if COUNT.fullmatch(str(p.annotation))),
            frozenset(p.name for p in rest if str(p.annotation).partition(" |")[0] == "float") | {"data"},
        )

    @functools.cached_property
    def counts(self) -> frozenset[str]:
        """Returns the parameters that take integers, where tensors are read as such."""
        return (self.keywords & SIZES) - self.tensors | self.integers

    @functools.cached_property
    def package(self) -> str:
        """Returns the package that the rule comes from, by its import name."""
        function = self.function
        while isinstance(function, functools.partial):
            function = function.func
        return (getattr(function, "__module__", None) or "an unknown package").partition(".")[0]

    @functools.cached_property
    def is_own(self) -> bool:
        """Returns whether this package has written the rule."""
        return self.package == _OWN_PACKAGE

    def returned(self, result: Any, op: str) -> Value:
        """Returns a result of the rule, as checked where another package wrote it: nothing, of an operator of
        its own, is an empty tuple. Raises TypeError for what is no value that a rule may return.
        """
        if type(result) is Tensor or self.is_own:
            return result  # type: ignore[no-any-return]
        result = () if result is None and "::" in op else result
        for part in leaves(result):
            if not isinstance(part, _RETURNED) and (part is not None or result is None):
                kind = type(part)
                raise TypeError(f"it must return a Tensor, not {kind.__module__}.{kind.__qualname__}")
        return result  # type: ignore[no-any-return]

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments by the rule's own names. Raises BadCall where they do not fit."""
        key = len(args), *kwargs
        if (names := self._names.get(key)) is not None:
            return dict(zip(names, (*args, *kwargs.values()), strict=True))
        named = self._bound(args, kwargs)
        if len(named) == len(args) + len(kwargs) and self.variadic not in named:
            self._names[key] = (*named,)
        return named

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        named = dict(zip(self.positional, args, strict=False))
        if len(args) > len(self.positional):
            rest = args[len(self.positional) :]
            if not self.variadic:
                raise BadCall(f"{len(args)} arguments, where the rule takes {len(self.positional)}")
            named[self.variadic] = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple) else rest
        for key, value in kwargs.items():
            name = key if key in self.keywords else SYNONYMS.get(key, key)
            if name in self.keywords:
                if name in named:
                    raise BadCall(f"argument {key!r} is given twice")
                alone = name == self.variadic and not isinstance(value, tuple)
                named[name] = (value,) if alone else value
            elif key not in IGNORED:
                raise BadCall(f"the rule does not know the argument {key!r}")
        if missing := self.required - named.keys():
            raise BadCall(f"argument {min(missing)!r} is missing")
        return named

    def __call__(self, context: Context, named: dict[str, Any]) -> Value:
        """Returns the rule's result for arguments that `bind` has named."""
        result: Value
        for limit in self.limits:
            limit(context, named)
        for name, value in named.items():
            if type(value) in _WITH_INTEGERS and not has_64_bits(value) and name not in self.floats:
                require_64_bits(context, value, name in self.counts)
        if self.variadic not in named:
            result = self.function(context, **named)
            return result
        others = {n: v for n, v in named.items() if n != self.variadic and n not in self.positional}
        result = self.function(context, *(named[n] for n in self.positional), *named[self.variadic], **others)
        return result


class Rules(Mapping[str, Rule]):
    """Rules by canonical operator name.

    `|` joins two families, which must not overlap; `+` lets the right one win. Other operators are looked up
    in `elsewhere`. They are applied as they hold in a `release` of torch, None for the newest that is known,
    where `floats` is the dtype of floats for which the program names none.
    """

    __slots__ = ("_elsewhere", "_rules", "floats", "release")

    def __init__(
        self,
        functions: Mapping[str, RuleFunction | Rule],
        elsewhere: Callable[[str], Rule | None] = lambda name: None,
        release: Release | None = None,
        floats: str = "float32",
    ) -> None:
        self._rules = {n: f if isinstance(f, Rule) else Rule.of(f) for n, f in functions.items()}
        self._elsewhere, self.release, self.floats = elsewhere, release, floats

    def __getitem__(self, name: str) -> Rule:
        rule: Rule | None = self.get(name)
        if rule is None:
            raise KeyError(name)
        return rule

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the rule of an operator, or the default."""
        return self._rules.get(name) or self._elsewhere(name) or default

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __or__(self, other: Mapping[str, RuleFunction | Rule]) -> Rules:
        if twice := self.keys() & other.keys():
            raise ValueError(f"operators with two rules: {', '.join(sorted(twice))}")
        return self + other

    def __add__(self, other: Mapping[str, RuleFunction | Rule]) -> Rules:
        return Rules({**self._rules, **other}, self._elsewhere, self.release, self.floats)

    def reaching(self, reach: Mapping[str, Callable[[Named], Reach | None]]) -> Rules:
        """Returns the same rules, some of them with a reach, so that they need not get whole shapes."""
        known = {op: replace(self._rules[op], reach=f) for op, f in reach.items() if op in self._rules}
        return self + known

    def limited(self, limits: Mapping[str, Iterable[Callable[[Context, Named], None]]]) -> Rules:
        """Returns the same rules, some of them with limits of the numbers that they take."""
        return self + {op: replace(self._rules[op], limits=tuple(found)) for op, found in limits.items()}

    def taking_sparse(self, rules: Mapping[str, RuleFunction]) -> Rules:
        """Returns the same rules, extended by these functions for calls with sparse tensors."""
        return self + {op: replace(self._rules[op], of_sparse=Rule.of(f)) for op, f in rules.items()}

    def or_else(self, elsewhere: Callable[[str], Rule | None]) -> Rules:
        """Returns the same rules, extended by those that `elsewhere` finds for other operators."""
        return self._sharing(elsewhere, self.release, self.floats)

    def of_torch(self, release: Release | None, floats: str = "float32") -> Rules:
        """Returns the same rules, applied as they hold in a release of torch with this default dtype."""
        return self._sharing(self._elsewhere, release, floats)

    def _sharing(
        self, elsewhere: Callable[[str], Rule | None], release: Release | None, floats: str
    ) -> Rules:
        shared = Rules({}, elsewhere, release, floats)
        shared._rules = self._rules
        return shared


def leaves(value: Value) -> list[Value]:
    """Returns the parts of a result that have an id of their own, from left to right."""
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]
