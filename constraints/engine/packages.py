"""Tables that installed packages bring: an entry point of a group, named after what the table is for."""

from __future__ import annotations

from functools import cache

from .ruleset import BadRules


@cache
def names(group: str) -> frozenset[str]:
    """Returns the names for which installed packages have tables in this group."""
    from importlib.metadata import entry_points

    return frozenset(entry_points(group=group).names)


def brought(group: str, name: str, what: str) -> tuple[object, str, str] | None:
    """Returns the table that a package brings for this name, the words for it, and what to do where it is
    wrong; None where no package does.

    Raises BadRules where two packages do, or the table cannot be loaded. `what` says what it contains.
    """
    from importlib.metadata import entry_points

    points = tuple(entry_points(group=group, name=name))
    if not points:
        return None
    told = " and ".join(sorted(f"{point.value} of {_package(point)}" for point in points))
    if len(points) > 1:
        raise BadRules(f"two packages have {what} for {name}: {told}", "uninstall one of them")
    hint = f"the package has to be mended or uninstalled; it is the entry point {name!r} in {group!r}"
    try:
        return points[0].load(), told, hint
    except Exception as error:  # somebody else's code may raise anything
        raise BadRules(f"{told} cannot be loaded: {type(error).__name__}: {error}", hint) from error


def _package(point: object) -> str:
    package = getattr(point, "dist", None)
    return package.name if package is not None else "an unknown package"
