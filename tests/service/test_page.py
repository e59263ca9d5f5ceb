"""The web page, in headless Chromium, against a running service."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from serving import FIXTURES, Running, free_port

from anyshape.constraints.ir import program
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.program import Input, Node, Origin, Program, Ref
from anyshape.constraints.terms.dims import sym
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.remote.sending import package

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: the extra anyshape[dev]")
expect = sync_api.expect
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that fails the test where a script does, or where the policy stops something."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(20_000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if "Security Policy" in said.text else None)
    yield page
    context.close()
    assert errors == []


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    service = Running(tmp_path_factory.mktemp("service"), free_port())
    yield service
    service.end()


@pytest.fixture
def service(shared: Running) -> Running:
    """A service that has no checks."""
    for check in shared.client.get("/v1/checks").json()["checks"]:
        shared.client.delete(f"/v1/checks/{check['id']}")
    return shared


def url(service: Running) -> str:
    return str(service.client.base_url)


def ask(page: Any, service: Running, name: str = "bert.pt2", **fields: str) -> None:
    page.goto(url(service))
    page.set_input_files("#file", FIXTURES / name)
    for field, text in fields.items():
        page.fill(f"#{field}", text)
    page.click("#send")
    page.wait_for_selector("#verdict.proved, #verdict.refined, #verdict.failed")


def test_from_a_file_to_a_report(page: Any, service: Running) -> None:
    ask(page, service, assume="s31 <= 64", name="bert.pt2")
    assert page.inner_text("#verdict") == "refined"
    page.wait_for_selector("#answer:not([hidden])")
    assert page.inner_text("#accepts") == "s64 <= 32"
    assert "1 to 32" in page.inner_text("#dims")
    assert "requires s64 <= 32" in page.inner_text("#findings")
    assert "s31=2, s64=33" in page.inner_text("#examples")
    report = page.frame_locator("#frame")
    assert report.locator("#verdict").inner_text() == "refined"
    assert report.locator("svg#graph g").count() > 5
    told = {"text": "It runs exactly where", "spec": 'Dim("s64"', "json": '"verdict"', "sarif": "2.1.0"}
    for form, part in told.items():
        page.click(f"#tabs [data-form={form}]")
        expect(page.locator("#text")).to_contain_text(part)
    assert page.inner_text("#history a .verdict") == "refined"


def test_a_change_of_an_assumption_changes_the_verdict(page: Any, service: Running) -> None:
    ask(page, service)
    page.wait_for_selector("#answer:not([hidden])")
    page.fill("#assume2", "s64 <= 16")
    page.click("#again button")
    page.wait_for_selector("#verdict.proved")
    page.wait_for_selector("#before:not([hidden])")
    assert page.inner_text("#before") == "Before the change: refined, now proved."
    assert page.locator("#history li").count() == 2
    expect(page.locator("#others option")).to_have_count(2)
    page.select_option("#others", index=1)
    expect(page.locator("#verdict")).to_have_text("narrower")
    assert "and for no others" in page.inner_text("#asked")
    page.go_back()
    page.wait_for_selector("#verdict.proved")


def test_a_program_is_pasted(page: Any, service: Running) -> None:
    b, h = sym("b"), sym("h")
    arguments = (("self", Ref(0)), ("size", (b, 2, h // 2)))
    view = Node("view", arguments, (1,), Origin("<img src=x onerror=alert(1)>", 3, code="<script>x</script>"))
    made = Program((Input(0, "x", Tensor((b, h))),), (view,), (("0", Ref(1)),))
    page.goto(url(service))
    page.click("details summary")
    page.fill("#program", json.dumps(program.to_json(made)))
    page.fill("#name", "<b>pasted</b>")
    page.click("#send")
    page.wait_for_selector("#answer:not([hidden])")
    assert page.inner_text("#accepts") == "h % 2 == 0"
    assert page.inner_text("#title") == "<b>pasted</b>"
    assert page.locator("#findings img, #findings script, #title b").count() == 0
    assert "<script>x</script>" in page.inner_text("#findings")


def splits(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 7:
        return x.view(x.shape[0], 2, -1).sum(1)
    return x.relu()


def further(page: Any, kind: str, verdict: str) -> None:
    page.select_option("#kind2", kind)
    page.click("#again button")
    words = {"branches": "its branches", "migrate": "its types", "refine": "its bounds"}
    expect(page.locator("#history a[aria-current] small")).to_contain_text(words[kind])
    page.wait_for_selector(f"#verdict.{verdict}")
    page.wait_for_selector("#answer:not([hidden])")


def test_other_questions_are_asked_about_a_program(page: Any, service: Running) -> None:
    page.goto(url(service))
    sent = package(splits, "x: float32[b, h]", "b <= 1000")
    page.set_input_files("#file", {"name": "splits", "mimeType": "", "buffer": sent.content})
    page.click("#send")
    page.wait_for_selector("#answer:not([hidden])")
    for section in ("#branches", "#types", "#inner"):
        expect(page.locator(section)).to_be_hidden()
    further(page, "branches", "refined")
    expect(page.locator("#branches")).to_contain_text("true where 8 <= b, as at b=")
    expect(page.locator("#branches")).to_contain_text("false where b <= 7")
    further(page, "migrate", "refined")
    expect(page.locator("#branches")).to_be_hidden()
    row = page.locator("#types tbody tr").filter(has_text="view")
    expect(row).to_be_visible()
    assert row.locator("td").all_inner_texts()[:3] == ["view", "[b, 2, h//2]", "[Dyn, 2, Dyn]"]
    page.fill("#assume2", "b <= 7")
    further(page, "branches", "proved")
    expect(page.locator("#branches")).to_contain_text("always false")
    assert page.inner_text("#history a[aria-current] small") == "its branches, b <= 7"
    page.fill("#assume2", "")
    page.select_option("#kind2", "refine")
    page.fill("#finite", "64")
    further(page, "refine", "refined")
    expect(page.locator("#inner")).to_contain_text("h//2")
    assert page.locator("#inner tr").filter(has_text="h//2").inner_text().split("\t")[1] == "1 to 32"
    assert page.input_value("#finite") == "64"


def test_a_recorded_program_says_what_can_be_changed(page: Any, service: Running) -> None:
    page.goto(url(service))
    sent = package(splits, "x: float32[b, h]")
    page.set_input_files("#file", {"name": "splits", "mimeType": "", "buffer": sent.content})
    page.click("#send")
    page.wait_for_selector("#answer:not([hidden])")
    expect(page.locator("#traced")).to_contain_text("trace it and send it again")
    assert page.input_value("#inputs2") == "x: float32[b, h]"
    assert page.locator("#inputs2").get_attribute("readonly") is not None
    page.fill("#assume2", "b <= 7")
    page.click("#again button")
    page.wait_for_selector("#verdict.proved")
    expect(page.locator("#before")).to_have_text("Before the change: refined, now proved.")
    ask(page, service)  # a saved program is asked about any inputs
    expect(page.locator("#traced")).to_be_hidden()
    assert page.locator("#inputs2").get_attribute("readonly") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_telephone_shows_all_of_it(browser: Any, service: Running, scheme: Any) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(20_000)
    ask(page, service)
    further(page, "migrate", "refined")
    expect(page.locator("#types tbody tr").first).to_be_visible()
    for address in (page.url, url(service)):
        page.goto(address)
        page.wait_for_selector("#ask:not([hidden]), #answer:not([hidden])")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}[scheme]
    context.close()


def test_what_is_wrong_is_told(page: Any, service: Running) -> None:
    page.goto(url(service))
    page.click("#send")
    page.wait_for_selector("#problem:not([hidden])")
    assert "Choose a .pt2" in page.inner_text("#problem")
    page.set_input_files("#file", FIXTURES / "bert.pt2")
    page.fill("#assume", "s31 <=")
    page.click("#send")
    expect(page.locator("#problem")).to_contain_text("column")
    page.fill("#assume", "")
    page.fill("#inputs", "y: [b]")
    page.click("#send")
    page.wait_for_selector("#verdict.failed")
    expect(page.locator("#problem")).to_contain_text("input_ids")


def test_history_and_links(page: Any, service: Running) -> None:
    ask(page, service, "resnet.pt2")
    link = page.url
    assert "#/checks/" in link
    ask(page, service, "bert.pt2")
    page.fill("#named", "resnet")
    expect(page.locator("#history li")).to_have_count(1)
    page.click("#history a")
    expect(page.locator("#title")).to_have_text("resnet.pt2")
    page.click("#link")
    assert page.evaluate("navigator.clipboard.readText()") == link
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("#verdict.proved")
    page.click("#delete")
    page.wait_for_selector("#ask:not([hidden])")
    assert service.client.get("/v1/checks", params={"name": "resnet"}).json()["checks"] == []


def test_a_token_opens_the_page_s_data(
    page: Any, running: Callable[..., Running], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["token", "create", "me", "--data", str(tmp_path / "anyshape-service")]) == 0
    token = capsys.readouterr().out.strip()
    service = running()
    page.goto(url(service))
    page.wait_for_selector("#entry:not([hidden])")
    assert "token" in page.inner_text("#problem")
    page.fill("#token", token)
    page.click("#entry button")
    page.wait_for_selector("#entry", state="hidden")
    page.set_input_files("#file", FIXTURES / "sizes.pt2")
    page.click("#send")
    page.wait_for_selector("#answer:not([hidden])")
    expect(page.frame_locator("#frame").locator("#verdict")).to_be_visible()
    look = "(() => { try { return sessionStorage.length } catch (error) { return error.name } })()"
    assert page.frames[-1].evaluate(look) == "SecurityError"  # a report has no way to the token
    page.click("#leave")
    page.wait_for_selector("#entry:not([hidden])")


def test_the_keyboard_reaches_everything(page: Any, service: Running) -> None:
    ask(page, service, "sizes.pt2")
    page.wait_for_selector("#answer:not([hidden])")
    reached = set()
    page.focus("#new")
    for _ in range(25):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.dataset.form || ''"))
    controls = "named how link delete others inputs2 assume2 kind2 text spec"
    assert {*controls.split()} <= reached
