"use strict";
// The page of the service: asks for checks, follows them, and shows what came of them.
// Everything that the service says is put into the page as text, never as HTML.

const $ = (id) => document.getElementById(id);
const KEY = "anyshape-token"; // kept for this tab alone
const STEPS = ["queued", "load", "trace", "generate", "solve", "replay", "spec"];

const KINDS = { branches: "its branches", migrate: "its types", refine: "its bounds", compare: "compared" };

let shown = null; // the check that is looked at
let before = null; // what was asked before that, where it is a change of it
let following = null;
let next = null;
let asking = 0;
let file = null;
let frame = null; // what the frame is to show once it is ready

// ---- talking to the service

class Refused extends Error {
  constructor(status, problem) {
    super(problem);
    this.status = status;
  }
}

async function call(path, options = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service does not answer.");
  }
  if (answer.ok) return answer;
  const data = await answer.json().catch(() => ({}));
  if (answer.status === 401) $("entry").hidden = false;
  const wait = answer.headers.get("retry-after");
  const told = [data.detail || `The service answers ${answer.status}.`, data.hint, wait && `Try again in ${wait} s.`];
  throw new Refused(answer.status, told.filter(Boolean).join("\n"));
}

const json = async (path, options) => (await call(path, options)).json();
const post = (path, data) =>
  json(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(data) });

function attempt(action) {
  return async (event) => {
    if (event) event.preventDefault();
    $("problem").hidden = true;
    try {
      await action(event);
    } catch (error) {
      if (error.name === "AbortError") return;
      $("problem").textContent = error.message;
      $("problem").hidden = false;
      if (!(error instanceof Refused)) throw error;
    }
  };
}

// ---- small things

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const lines = (id) => $(id).value.split("\n").map((line) => line.trim()).filter(Boolean);
const state = (check) => check.verdict || check.state;
const current = (id) => shown !== null && shown.id === id; // it may be another one by the time of an answer
const ended = (check) => !["queued", "running"].includes(check.state);
const sizes = (values) => Object.entries(values).map(([name, value]) => `${name}=${value}`).join(", ");

function fact(known) {
  if (known.equals) return `= ${known.equals}`;
  if (known.divisor === 0) return String(known.remainder);
  const range = `${known.min ?? "…"} to ${known.max ?? "any"}`;
  const rest = known.remainder ? `${known.divisor}n + ${known.remainder}` : `multiple of ${known.divisor}`;
  return known.divisor > 1 ? `${range}, ${rest}` : range;
}

// ---- history

async function history(more = false) {
  const query = new URLSearchParams({ limit: "30" });
  if ($("named").value) query.set("name", $("named").value);
  if ($("how").value) query.set("verdict", $("how").value);
  if (more && next) query.set("before", next);
  const turn = ++asking;
  const page = await json(`/v1/checks?${query}`);
  if (turn !== asking) return; // a later question has been asked meanwhile
  next = page.next;
  $("more").hidden = !next;
  if (!more) $("history").replaceChildren();
  for (const check of page.checks) {
    const link = element("a", undefined, { href: `#/checks/${check.id}`, title: check.name });
    const word = element("span", state(check), { class: `verdict ${state(check)}` });
    const more = [KINDS[check.asked.kind], ...check.asked.assume].filter(Boolean).join(", ");
    link.append(word, ` ${check.name}`, element("small", more || " "));
    const item = element("li");
    item.append(link);
    $("history").append(item);
  }
  mark();
}

function mark() {
  for (const link of $("history").querySelectorAll("a")) {
    if (shown && link.hash === `#/checks/${shown.id}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// ---- asking

function choose(chosen) {
  file = chosen || null;
  if (file) $("chosen").textContent = `${file.name}, ${(file.size / 1024).toFixed(0)} kB`;
}

async function ask() {
  const pasted = $("program").value.trim();
  const model = file || (pasted ? new File([pasted], "program.json", { type: "application/json" }) : null);
  if (!model) throw new Refused(0, "Choose a .pt2, or paste the JSON of a program.");
  const form = new FormData();
  form.set("model", model);
  for (const line of lines("inputs")) form.append("inputs", line);
  for (const line of lines("assume")) form.append("assume", line);
  if ($("name").value) form.set("name", $("name").value);
  if ($("budget").value) form.set("budget_s", $("budget").value);
  $("send").disabled = true;
  try {
    before = null;
    const check = await json("/v1/checks", { method: "POST", body: form });
    location.hash = `#/checks/${check.id}`;
  } finally {
    $("send").disabled = false;
  }
}

async function again() {
  const was = shown;
  const asked = { kind: $("kind2").value, assume: lines("assume2"), name: was.name };
  if (!$("inputs2").readOnly && lines("inputs2").length) asked.inputs = lines("inputs2");
  if (asked.kind === "refine" && $("finite").value) asked.finite = Number($("finite").value);
  const check = await post(`/v1/checks/${was.id}/variants`, asked);
  before = check.id === was.id ? null : was;
  location.hash = `#/checks/${check.id}`;
}

// ---- a check

async function open(id) {
  if (following) following.abort();
  following = new AbortController();
  if (before && before.id === id) before = null;
  show(await json(`/v1/checks/${id}`));
  await history();
  if (current(id) && !ended(shown)) await follow(id, following.signal);
  if (current(id) && shown.state === "done") await answer();
}

async function follow(id, signal) {
  const stream = await call(`/v1/checks/${id}/events`, { signal });
  const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").find((line) => line.startsWith("data: "));
      if (data && current(id)) step(JSON.parse(data.slice(6)));
    }
  }
  if (current(id)) {
    show(await json(`/v1/checks/${id}`));
    await history();
  }
}

function show(check) {
  shown = check;
  $("ask").hidden = true;
  $("check").hidden = false;
  for (const id of ["answer", "whole", "again", "before"]) $(id).hidden = true;
  $("title").textContent = check.name;
  document.title = `${state(check)}: ${check.name}`;
  const asked = [...(check.asked.inputs || ["the program's own inputs"]), ...check.asked.assume.map((a) => `where ${a}`)];
  $("asked").textContent = asked.join("; ");
  $("inputs2").value = (check.asked.inputs || []).join("\n");
  $("inputs2").readOnly = check.form === "recorded" && !check.asked.inputs;
  $("traced").hidden = check.form !== "recorded";
  $("assume2").value = check.asked.assume.join("\n");
  $("kind2").value = check.asked.kind === "compare" ? "check" : check.asked.kind;
  $("finite").value = check.asked.finite || "";
  limited();
  $("cancel").hidden = ended(check);
  $("steps").hidden = ended(check);
  $("again").hidden = !ended(check) || check.asked.kind === "compare";
  step(check);
  if (check.failure) {
    $("problem").textContent = [check.failure.problem, check.failure.hint].filter(Boolean).join("\n");
    $("problem").hidden = false;
  }
  if (check.comparison) compared(check);
  mark();
}

function limited() {
  $("limit").hidden = $("kind2").value !== "refine";
}

function step(now) {
  const word = now.verdict || (now.state === "done" ? "" : now.state);
  $("verdict").textContent = word;
  $("verdict").className = `verdict ${word}`;
  const at = now.state === "queued" ? "queued" : (now.step || "load").split(",")[0];
  const steps = STEPS.includes(at) ? STEPS : [...STEPS, at];
  const place = steps.indexOf(at);
  $("steps").replaceChildren(
    ...steps.map((name, index) =>
      element("li", name === at && now.waiting ? `${name}, ${now.waiting} before it` : name,
        index === place ? { "aria-current": "step" } : {})),
  );
}

async function answer() {
  const id = shown.id;
  if (shown.comparison) return;
  const report = await json(`/v1/checks/${id}/report`);
  if (!current(id)) return;
  $("answer").hidden = $("whole").hidden = false;
  $("accepts").textContent = report.accepts.condition === "True" ? "everywhere: all declared inputs"
    : report.accepts.condition === "False" ? "nowhere" : report.accepts.condition;
  const domain = report.accepts.domain === "True" ? "" : `where ${report.accepts.domain}`;
  $("asked").textContent = [...report.inputs, domain].filter(Boolean).join("; ");
  if (!$("inputs2").value) $("inputs2").value = report.inputs.join("\n");
  table("dims", Object.entries(report.dims).map(([name, known]) => [name, fact(known)]));
  $("examples").textContent = [
    report.runs_at && `It runs at ${sizes(report.runs_at)}.`,
    report.fails_at && `It is refused at ${sizes(report.fails_at)}.`,
  ].filter(Boolean).join(" ");
  $("findings").replaceChildren(
    ...(report.findings.length ? report.findings : [{ severity: "note", code: "", message: "none" }]).map(finding),
  );
  await further(id);
  if (!current(id)) return;
  if (before) {
    const change = shown.verdict === before.verdict ? `still ${shown.verdict}` : `${before.verdict}, now ${shown.verdict}`;
    $("before").textContent = `Before the change: ${change}.`;
    $("before").hidden = false;
  }
  await others();
  if (!current(id)) return;
  await form($("tabs").querySelector('[aria-selected="true"]').dataset.form);
}

// ---- what other kinds of questions are answered with

async function further(id) {
  const kind = shown.asked.kind;
  for (const [name, section] of [["branches", "branches"], ["migrate", "types"], ["refine", "inner"]]) {
    $(section).hidden = name !== kind;
  }
  if (kind === "branches") {
    const found = await json(`/v1/checks/${id}/branches`);
    $("branches").querySelector("ol").replaceChildren(
      ...(found.length ? found.map(branch) : [element("li", "none: no condition on sizes was met")]),
    );
  } else if (kind === "migrate") {
    types(await json(`/v1/checks/${id}/migration`));
  } else if (kind === "refine") {
    // There is no spec where nothing runs.
    const spec = await json(`/v1/checks/${id}/spec`).catch(() => ({ inner_sizes: {} }));
    const known = Object.entries(spec.inner_sizes);
    table("inner", known.length ? known.map(([size, one]) => [size, fact(one)])
      : [["none are told where a size has no bound: give one below", ""]]);
  }
}

function branch(found) {
  const item = element("li");
  item.append(element("code", found.condition), element("small", ` ${found.file}:${found.line}`, { class: "faint" }));
  const told = { true: "always true", false: "always false" }[String(found.outcome)];
  if (told) item.append(element("div", told));
  else if (found.on_data) item.append(element("div", "the data decide it"));
  else {
    for (const side of ["true", "false"]) {
      const at = found[side].at ? `, as at ${sizes(found[side].at)}` : "";
      item.append(element("div", `${side} where ${found[side].where}${at}`));
    }
  }
  if (found.missed) item.append(element("div", `as far as was examined: ${found.missed}`, { class: "faint" }));
  return item;
}

function types(found) {
  const one = found.static;
  const at = one && Object.keys(one.sizes).length ? ` That in the last column is at ${sizes(one.sizes)}.` : "";
  const some = "Dyn is what is not known or not the same everywhere.";
  $("types").querySelector("p").textContent = one ? some + at : "No static migration is known.";
  table("types", Object.entries(found.types).map(([name, type]) =>
    [name, type, found.principal[name] || "", one ? one.types[name] || "" : ""]));
}

function table(section, rows) {
  $(section).querySelector("tbody").replaceChildren(...rows.map((cells) => {
    const row = element("tr");
    row.append(...cells.map((text) => element("td", text)));
    return row;
  }));
}

function finding(found) {
  const item = element("li", undefined, { class: found.severity });
  if (found.code) item.append(element("strong", found.code), ": ");
  item.append(found.message);
  const where = found.origin && found.origin.file ? `${found.origin.file}:${found.origin.line}` : "";
  if (where) item.append(element("pre", `${where}\n${found.origin.code}`.trim()));
  if (found.condition) item.append(element("div", `requires ${found.condition}`));
  if (found.witness) item.append(element("div", `shown by ${sizes(found.witness)}`, { class: "faint" }));
  return item;
}

async function form(name) {
  const id = shown.id;
  for (const tab of $("tabs").children) tab.setAttribute("aria-selected", String(tab.dataset.form === name));
  $("frame").hidden = name !== "html";
  $("text").hidden = name === "html";
  if (name === "html") {
    const page = await (await call(`/v1/checks/${id}/report?format=html`)).text();
    if (!current(id)) return;
    frame = page;
    const made = $("frame").cloneNode(); // a new one leaves no trace in the history of the tab
    made.src = "frame.html";
    $("frame").replaceWith(made);
    return;
  }
  let text;
  if (name === "spec") {
    text = await json(`/v1/checks/${id}/spec`).then((spec) => spec.python, (error) => {
      if (error.status === 409) return error.message;
      throw error;
    });
  } else {
    text = await (await call(`/v1/checks/${id}/report?format=${name}&shapes=true`)).text();
    if (name === "json") text = JSON.stringify(JSON.parse(text), null, 2);
  }
  if (current(id)) $("text").textContent = text;
}

// ---- comparing

const RELATIONS = {
  same: "Both run for the same inputs.",
  narrower: "The first runs for some of the inputs that the second runs for, and for no others.",
  wider: "The first runs for all inputs that the second runs for, and for more.",
  disjoint: "There is no input for which both run.",
  overlapping: "Each runs for inputs that the other one refuses, and some run with both.",
  unknown: "It is not known how they lie to each other.",
};

async function others() {
  const page = await json("/v1/checks?state=done&limit=100");
  const choices = page.checks.filter((check) => !current(check.id) && check.verdict);
  const name = (check) => `${check.name} (${[check.verdict, ...check.asked.assume].join(", ")})`;
  $("others").replaceChildren(
    element("option", choices.length ? "…" : "(no other check)", { value: "" }),
    ...choices.map((check) => element("option", name(check), { value: check.id })),
  );
}

async function compare() {
  if (!$("others").value) return;
  const check = await post("/v1/comparisons", { first: shown.id, second: $("others").value });
  location.hash = `#/checks/${check.id}`;
}

function compared(check) {
  const found = check.comparison;
  $("verdict").textContent = found.relation;
  const more = [
    RELATIONS[found.relation],
    found.only_first && `Only the first runs at ${sizes(found.only_first)}.`,
    found.only_second && `Only the second runs at ${sizes(found.only_second)}.`,
    found.exact ? "" : "Of one of them it is not known for certain where it runs.",
  ];
  $("asked").textContent = more.filter(Boolean).join(" ");
}

// ---- the page

const route = attempt(async () => {
  const match = location.hash.match(/^#\/checks\/([0-9a-f]{20})$/);
  if (match) return open(match[1]);
  if (following) following.abort();
  shown = before = null;
  document.title = "anyshape";
  $("ask").hidden = false;
  $("check").hidden = true;
  await history();
});

function signed() {
  const token = Boolean(sessionStorage.getItem(KEY));
  $("leave").hidden = !token;
  $("entry").hidden = true;
}

addEventListener("message", (event) => {
  if (event.source === $("frame").contentWindow && event.data === "ready" && frame !== null) {
    event.source.postMessage(frame, "*"); // the frame is a page of nobody's, which no origin names
    frame = null;
  }
});
addEventListener("hashchange", route);
$("ask").addEventListener("submit", attempt(ask));
$("again").addEventListener("submit", attempt(again));
$("kind2").addEventListener("change", limited);
$("file").addEventListener("change", () => choose($("file").files[0]));
for (const name of ["dragenter", "dragover"]) {
  $("drop").addEventListener(name, (event) => {
    event.preventDefault();
    $("drop").classList.add("over");
  });
}
$("drop").addEventListener("dragleave", () => $("drop").classList.remove("over"));
$("drop").addEventListener("drop", (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  choose(event.dataTransfer.files[0]);
});
$("entry").addEventListener("submit", attempt(async () => {
  sessionStorage.setItem(KEY, $("token").value.trim());
  $("token").value = "";
  signed();
  await route();
}));
$("leave").addEventListener("click", attempt(async () => {
  sessionStorage.removeItem(KEY);
  signed();
  location.hash = "#/";
  location.reload();
}));
$("filter").addEventListener("submit", (event) => event.preventDefault());
$("filter").addEventListener("input", attempt(() => history()));
$("more").addEventListener("click", attempt(() => history(true)));
$("cancel").addEventListener("click", attempt(async () => show(await json(`/v1/checks/${shown.id}/cancel`, { method: "POST" }))));
$("link").addEventListener("click", attempt(async () => {
  await navigator.clipboard.writeText(location.href);
  $("link").textContent = "Copied";
  setTimeout(() => { $("link").textContent = "Copy link"; }, 1500);
}));
$("delete").addEventListener("click", attempt(async () => {
  await call(`/v1/checks/${shown.id}`, { method: "DELETE" });
  location.hash = "#/";
}));
$("others").addEventListener("change", attempt(compare));
$("tabs").addEventListener("click", attempt((event) => event.target.dataset.form && form(event.target.dataset.form)));
signed();
route();
