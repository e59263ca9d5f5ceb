"""docs/service.md and examples/service speak of what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from anyshape.typecheck.service.app import create_app
from anyshape.typecheck.service.ops.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/service.md").read_text()
EXAMPLES = [*(ROOT / "examples/service").iterdir()]


def test_every_setting_is_documented_and_no_other() -> None:
    table = PAGE.partition("| setting | default |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(Settings.model_fields)


def test_examples_set_what_can_be_set() -> None:
    assert len(EXAMPLES) == 3
    for file in (*EXAMPLES, ROOT / "docs/service.md"):
        named = set(re.findall(r"ANYSHAPE_SERVICE_([A-Z_]+)", file.read_text()))
        assert {name.lower() for name in named} <= set(Settings.model_fields), file
    services = yaml.safe_load((ROOT / "examples/service/compose.yaml").read_text())["services"]
    assert {"database", "service", "more"} <= services.keys()


def test_the_image_has_what_the_service_needs() -> None:
    """Checks in the service need no torch."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = (ROOT / "examples/service/Dockerfile").read_text()
    (installed,) = re.findall(r'^RUN pip install --no-cache-dir "\.\[(.*)\]"$', text, re.MULTILINE)
    assert installed.split(",") == ["service", "postgresql"] and {"service", "postgresql"} <= extras.keys()
    copied = {name for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE) for name in line.split()[:-1]}
    assert copied == {*"pyproject.toml README.md LICENSE constraints solver tracer typecheck".split()}
    assert all((ROOT / name).exists() for name in copied)


def test_every_route_is_documented(tmp_path: Path) -> None:
    document = create_app(Settings(data=tmp_path)).openapi()
    for path, operations in document["paths"].items():
        for method in operations:
            told = f"`{path}`" in PAGE if not path.startswith("/v1") else f"`{method.upper()} {path}`" in PAGE
            assert told, f"{method} {path}"
