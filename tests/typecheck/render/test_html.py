"""The HTML page, in headless Chromium: what it shows, and that keys, pointer and thousands of calls work.

The tests in a browser need a Chromium on the machine (`apt-get install chromium`). Without one they are
skipped, and say so.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rendered import Deep, report

from anyshape.constraints.ir.program import Origin
from anyshape.typecheck import Code, Finding, Link, Report, Severity, Shape, check
from anyshape.typecheck.render.html import page_data, summary, to_html
from anyshape.typecheck.report.report import Operand, Repair

ATTACK = "</script><img src=x onerror=\"document.title='broken into'\"><b>&amp;"


def deep(stages: int, branches: int = 0) -> Report:
    """A report as of `Deep`, made by hand: checking thousands of calls is not what is tested here."""
    shapes: list[Shape] = []

    def call(op: str, module: str, *operands: Operand, shape: str = "float32[b, t, 8]") -> Operand:
        index = len(shapes)
        origin = Origin("deep.py", index + 1, "Block.forward", module, f"y = {op}(x)", 8, 4, 7 + len(op))
        shapes.append(Shape(index, op, (shape,), origin, operands))
        return Operand(shape, index)

    x = Operand("float32[b, t, 8]", None, "x")
    for stage in range(stages):
        for block in range(25):
            name = f"stages.{stage}.{block}"
            y = call("layer_norm", f"{name}.norm", x)
            y = call("linear", f"{name}.linear", y)
            y = call("relu", name, y)
            x = call("add", name, x, y)
    out = call("linear", "head", x, shape="float32[b, t, 2]")
    last = shapes[-1]
    chain = tuple(Link(s.op, s.results[0], s.origin, s.node) for s in shapes[-4:-1])
    finding = Finding(
        Code.SHAPE_MISMATCH, "the last size is 8, not 7", Severity.ERROR, last.origin, "linear",
        chain=chain, witness={"b": 2, "t": 2}, node=last.node,
    )  # fmt: skip
    small = report("refuted")
    outputs = (replace(small.outputs[0], operands=(out,)),)
    return replace(small, target="deep.py:Deep", shapes=tuple(shapes), findings=(finding,), outputs=outputs)


def test_the_report_made_by_hand_is_like_a_real_one() -> None:
    real, made = page_data(check(Deep(1), "x: float32[b, t, 8]")), page_data(deep(1))
    assert real["regions"] == made["regions"]
    assert [c["op"] for c in real["calls"]] == [c["op"] for c in made["calls"]]
    assert [c["takes"] for c in real["calls"]] == [c["takes"] for c in made["calls"]]
    assert [c["results"] for c in real["calls"]] == [c["results"] for c in made["calls"]]
    assert [f["call"] for f in real["findings"]] == [f["call"] for f in made["findings"]] == [100]


# ---- the text of the page


def test_the_page_needs_no_network() -> None:
    page = to_html([report("refined")])
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}
    assert not re.search(r"%[a-z]+%", page.split("<script>")[0])
    assert "default-src 'none'" in page


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append(tag)


def test_a_notebook_gets_no_script_and_no_foreign_tag() -> None:
    evil = replace(report("refined"), target=ATTACK, findings=(
        Finding(Code.CONDITION, ATTACK, Severity.WARNING, Origin("f.py", 1, code=ATTACK, start=2, stop=9)),
    ))  # fmt: skip
    for one in (evil, report("proved"), report("refuted")):
        assert set(_Tags(summary(one)).found) <= {
            "div", "b", "u", "pre", "code", "table", "tr", "td", "details", "summary", "span", "style",
        }  # fmt: skip
    assert "t % 2 == 0" in report("refined")._repr_html_()
    assert _Tags(to_html([evil])).found.count("img") == 0


def test_a_notebook_shows_repairs_as_changes() -> None:
    origin = Origin("f.py", 3, code="self.a = Linear(8, 4)", start=16, stop=17)
    repairs = (Repair("change 8 to <6>", origin, "8", "<6>"), Repair("assume a & b", Origin()))
    text = summary(replace(report("refined"), findings=(
        Finding(Code.CONDITION, "it", Severity.WARNING, origin, repairs=repairs),
    )))  # fmt: skip
    assert "change 8 to &lt;6&gt; at f.py:3" in text and "assume a &amp; b" in text
    assert re.findall(r">([-+] .*?)</span>", text) == [
        "- self.a = Linear(8, 4)", "+ self.a = Linear(&lt;6&gt;, 4)",
    ]  # fmt: skip


def test_a_notebook_has_colours_for_light_and_dark() -> None:
    text = summary(report("refuted"))
    assert "prefers-color-scheme:dark" in text and "data-jp-theme-light=false" in text
    (style,) = re.findall(r"<style>(.*?)</style>", text)
    for name, light in re.findall(r"var\(--anyshape-(\w+),(#\w+)\)", text):
        (dark,) = {*re.findall(rf"--anyshape-{name}:(#\w+)", style.split("}")[0])}
        assert contrast(light, "#ffffff") > 4.5 and contrast(dark, "#1e1e1e") > 4.5, name


def contrast(colour: str, paper: str) -> float:
    """Returns the contrast of two colours as WCAG 2 defines it."""

    def light(text: str) -> float:
        parts = [int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(colour), light(paper)))
    return (high + 0.05) / (low + 0.05)


def test_a_notebook_holds_an_excerpt_of_very_many_calls() -> None:
    assert "Shapes of the first 500 of 2501 calls" in summary(deep(25))


# ---- in a browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


Opener = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opener]:
    """Opens the page of some reports. Errors of its script, and requests to a network, fail the test."""
    wrong: list[str] = []
    pages = []

    def open_page(*reports: Report, text: str = "", **options: Any) -> Any:
        file = tmp_path / "page.html"
        file.write_text(text or to_html(reports), encoding="utf-8")
        page = browser.new_page(viewport={"width": 1300, "height": 850}, **options)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda r: None if r.url.startswith("file:") else wrong.append(r.url))
        page.goto(file.as_uri())
        pages.append(page)
        page.wrong = wrong
        return page

    yield open_page
    for page in pages:
        page.close()
    assert not wrong


def whole(page: Any) -> Any:
    """With all of the graph in view: what is not in view is not drawn."""
    page.keyboard.press("0")
    settle(page)
    return page


def settle(page: Any) -> None:
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def transform(page: Any) -> str:
    settle(page)
    text: str = page.locator("#world").get_attribute("transform")
    return text


def on_screen(page: Any, selector: str) -> bool:
    settle(page)
    box, stage = page.locator(selector).first.bounding_box(), page.locator("#graph").bounding_box()
    return bool(
        stage["x"] <= box["x"] + box["width"] / 2 <= stage["x"] + stage["width"]
        and stage["y"] <= box["y"] + box["height"] / 2 <= stage["y"] + stage["height"]
    )


@in_browser
def test_errors_of_the_script_are_noticed(opened: Opener) -> None:
    page = opened(text=to_html([report("proved")]).replace("arrangeAll();", "arrangeNothing();"))
    assert any("arrangeNothing" in message for message in page.wrong)
    page.wrong.clear()


@in_browser
def test_requests_are_noticed(opened: Opener) -> None:
    page = opened(text="<img src='http://127.0.0.1:9/x.png'>")
    settle(page)
    assert "http://127.0.0.1:9/x.png" in page.wrong
    page.wrong.clear()


@in_browser
@pytest.mark.parametrize("name", ["proved", "refined", "refuted", "two-ways"])
def test_the_page_tells_the_report(opened: Opener, name: str) -> None:
    page = whole(opened(report(name)))
    text = page.inner_text("body")
    for part in (report(name).verdict, report(name).target, *report(name).inputs):
        assert part in text
    for finding in report(name).findings:
        assert finding.message in text
        assert finding.origin.code in text
    assert page.locator(".item.call").count() == len(report(name).shapes)
    assert page.locator(".item.input").count() == 1


@in_browser
def test_edges_carry_symbolic_shapes(opened: Opener) -> None:
    page = whole(opened(report("refuted")))
    assert sorted(page.locator(".shape").all_text_contents()) == ["[b, 2]", "[b, 6]", "[b, 8]"]


@in_browser
def test_labels_stand_beside_their_lines(opened: Opener) -> None:
    page = whole(opened(report("refuted")))
    lines, labels = page.locator(".wire"), page.locator(".shape")
    for at in range(labels.count()):
        label = labels.nth(at).bounding_box()
        for line in (lines.nth(n).bounding_box() for n in range(lines.count())):
            is_level = line["y"] < label["y"] + label["height"] and label["y"] < line["y"] + line["height"]
            middle = line["x"] + line["width"] / 2
            assert not is_level or not label["x"] < middle < label["x"] + label["width"]


@in_browser
def test_the_answer_stands_above_the_selected_call(opened: Opener) -> None:
    page = opened(report("refined"))
    headings = [text.lower() for text in page.locator("#side h2").all_text_contents()]
    answer, selected = headings.index("it runs exactly where"), headings.index("selected")
    assert headings[0] == "inputs" and answer < selected < headings.index("findings")


@in_browser
def test_lines_open_in_an_editor_where_their_path_is_known(opened: Opener) -> None:
    page = opened(report("refuted"))
    (finding,) = report("refuted").findings
    origin = finding.origin
    column = origin.indent + origin.start + 1
    links = {a.get_attribute("href") for a in page.locator("#side a.editor").element_handles()}
    assert links == {f"vscode://file{origin.file}:{origin.line}:{column}"}
    assert opened(deep(1)).locator("a.editor").count() == 0  # its file has no whole path
    hostile = replace(finding, origin=replace(origin, file="/a b/javascript:alert(1)#?.py"))
    link = opened(replace(report("refuted"), findings=(hostile,))).locator(".finding + a.editor")
    assert link.get_attribute("href").startswith("vscode://file/a%20b/javascript:alert(1)%23%3F.py:")


@in_browser
def test_the_failing_chain_is_highlighted(opened: Opener) -> None:
    page = opened(deep(1))
    assert page.locator(".item.fails text").first.text_content() == "linear"
    assert on_screen(page, ".item.fails")
    hot = page.locator(".item.call.hot").count()
    assert hot >= 4
    assert page.locator(".wire.hot").count() >= 3
    page.keyboard.press("Escape")
    assert page.locator(".hot").count() == 0
    page.click(".finding")
    assert page.locator(".item.call.hot").count() == hot


@in_browser
def test_hover_tells_the_source(opened: Opener) -> None:
    page = opened(report("refuted"))
    assert page.locator("#tooltip").is_hidden()
    page.locator(".item.fails").hover()
    text = page.locator("#tooltip").inner_text()
    assert "return self.second(self.first(x))" in text
    assert "rendered.py:" in text
    assert "takes float32[b, 6] from linear in first" in text
    assert page.locator("#tooltip mark").text_content() == "self.second(self.first(x))"
    page.mouse.move(5, 5)
    assert page.locator("#tooltip").is_hidden()


@in_browser
def test_search_finds_what_is_folded(opened: Opener) -> None:
    page = opened(deep(30))
    assert page.locator(".item[aria-label*='stages.17.3.norm']").count() == 0
    page.keyboard.press("/")
    page.keyboard.type("layer_norm stages.17.3.")
    assert page.locator("#hits").text_content() == "1 match"
    page.keyboard.press("Enter")
    assert page.locator("#hits").text_content() == "1 of 1"
    assert on_screen(page, ".item.chosen[aria-label*='stages.17.3.norm']")
    page.keyboard.type("nonsense")
    assert page.locator("#hits").text_content() == "0 matches"


@in_browser
def test_keys_reach_everything(opened: Opener) -> None:
    page = whole(opened(report("refined")))
    labels = {
        item.get_attribute("aria-label") for item in page.locator(".item:not(.port)").element_handles()
    }
    page.focus("#graph")
    page.keyboard.press("Home")
    said = [page.locator("#said").text_content()]
    for _ in range(40):
        page.keyboard.press("ArrowDown")
        said.append(page.locator("#said").text_content())
    assert labels == set(said)
    assert said[0] == "input x, [b, t, 8]"
    assert said[-1] == "output output, [b, 2, t//2, 8]"


@in_browser
def test_enter_folds_and_unfolds(opened: Opener) -> None:
    page = whole(opened(report("refined")))
    page.focus("#graph")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    region = page.locator(".item.chosen")
    assert region.get_attribute("aria-expanded") == "true"
    assert page.locator(".item.call").count() == 13
    page.keyboard.press("Enter")
    assert region.get_attribute("aria-expanded") == "false"
    assert whole(page).locator(".item.call").count() == 1
    page.keyboard.press("ArrowRight")
    assert whole(page).locator(".item.call").count() == 13


@in_browser
def test_a_click_folds_where_it_is(opened: Opener) -> None:
    page = whole(opened(report("refined")))
    title = page.locator(".item.region.open text", has_text="blocks.1").first
    before = title.bounding_box()
    title.click()
    after = page.locator(".item.region text", has_text="blocks.1").first.bounding_box()
    assert abs(before["y"] - after["y"]) < 8
    assert page.locator(".item.region[aria-expanded=false]").count() == 1
    page.click("#fold")
    assert whole(page).locator(".item.region[aria-expanded=true]").count() == 0
    page.click("#unfold")
    assert whole(page).locator(".item.region[aria-expanded=false]").count() == 0


@in_browser
def test_zoom_and_pan(opened: Opener) -> None:
    page = opened(report("refined"))
    seen = [transform(page)]
    page.mouse.move(700, 400)
    page.mouse.wheel(0, -300)
    seen.append(transform(page))
    page.mouse.down()
    page.mouse.move(760, 500, steps=4)
    page.mouse.up()
    seen.append(transform(page))
    page.focus("#graph")
    page.keyboard.press("-")
    seen.append(transform(page))
    page.keyboard.press("0")
    seen.append(transform(page))
    assert len(set(seen)) == 5


def paper(page: Any) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


@in_browser
def test_dark_and_light(opened: Opener) -> None:
    light, dark = (opened(report("proved"), color_scheme=scheme) for scheme in ("light", "dark"))
    white, black = paper(light), paper(dark)
    assert white == "rgb(255, 255, 255)"
    assert black == "rgb(20, 23, 28)"
    light.click("#theme")
    dark.click("#theme")
    assert (paper(light), paper(dark)) == (black, white)


@in_browser
def test_several_targets(opened: Opener) -> None:
    page = opened(report("refined"), report("refuted"))
    assert page.locator("#verdict").text_content() == "refined"
    page.select_option("#target", "1")
    assert page.locator("#verdict").text_content() == "refuted"
    assert page.locator(".item.fails").count() == 1


@in_browser
def test_no_text_of_the_report_becomes_a_script(opened: Opener) -> None:
    origin = Origin(ATTACK, 3, ATTACK, ATTACK, ATTACK, 0, 2, 9)
    shapes = report("refined").shapes
    evil = replace(
        report("refined"), target=ATTACK, inputs=(ATTACK,),
        shapes=tuple(replace(s, op=ATTACK, results=(ATTACK,), origin=origin) for s in shapes),
        findings=(replace(report("refined").findings[0], message=ATTACK, origin=origin),),
    )  # fmt: skip
    page = opened(evil)
    page.keyboard.press("f")
    page.locator(".item.fails").hover()
    settle(page)
    assert page.title() == f"anyshape: {ATTACK}"
    assert page.locator("img").count() == 0
    assert ATTACK in page.inner_text("#side")


PAN = """async () => {
  const graph = document.getElementById("graph"), {left, top} = graph.getBoundingClientRect();
  const fire = (type, x, y) => graph.dispatchEvent(
    new PointerEvent(type, {bubbles: true, clientX: x, clientY: y, button: 0}));
  const frame = () => new Promise(requestAnimationFrame);
  const times = [];
  fire("pointerdown", left + 400, top + 400);
  for (let i = 1; i <= 30; i++) {
    const before = performance.now();
    fire("pointermove", left + 400 + 9 * (i % 6), top + 400 + 9 * (i % 6));
    await frame(); await frame();
    times.push(performance.now() - before);
  }
  fire("pointerup", left + 400, top + 400);
  return times.sort((a, b) => a - b)[15] / 2;
}"""


@in_browser
def test_three_thousand_calls_open_and_pan_fluently(opened: Opener) -> None:
    """At 60 frames a second a frame takes 17 ms. The bounds leave room for a busy machine without a GPU."""
    page = opened(deep(30))
    assert len(page_data(deep(30))["calls"]) == 3001
    assert page.evaluate("performance.now()") < 8000
    assert page.locator(".item").count() < 200
    assert page.evaluate(PAN) < 60
    before = page.evaluate("performance.now()")
    page.click("#unfold")
    assert page.evaluate("performance.now()") - before < 5000
    whole(page)
    assert page.locator(".item").count() > 300  # the whole of it
    assert page.evaluate(PAN) < 150
    assert page.locator(".item.fails").count() == 1
