// Draws the graph of a report: regions that fold, one dagre layout per open region, SVG for what is in view.
"use strict";
(() => {
  const REPORTS = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const OPEN_AT_FIRST = 60; // boxes that are shown when the page opens
  const MATCHES_SHOWN = 2000; // matches of a search that are marked
  const SMALL = 0.32; // below this scale no text is drawn on edges
  const TINY = 0.12; // below this scale no text is drawn at all
  const SPECK = 4; // what is lower than this on the screen is drawn only if it is told of
  const HEAD = 26; // of an open region
  const LINE = 46; // height of a closed part
  const CHAR = 7.9; // width of a character
  const SMALL_CHAR = CHAR_OF_EDGE;

  const $ = id => document.getElementById(id);
  const svg = $("graph"),
    world = $("world"),
    tooltip = $("tooltip");

  function make(tag, attributes = {}, ...children) {
    const element = document.createElementNS(tag === tag.toLowerCase() && SHAPES.has(tag) ? SVG : HTML, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children.filter(child => child !== null));
    return element;
  }
  const HTML = "http://www.w3.org/1999/xhtml";
  const SHAPES = new Set(["g", "rect", "path", "text"]);

  // ---- the program as a tree of parts. A part is a call, an input, an output, or a region of parts; leaves
  // are numbered in program order, and a region spans the numbers [low, high) of its leaves.

  let report, root, leaves, uses, byCall, view, items, hot, failing, chosen, matches, at;

  function build(data) {
    report = data;
    leaves = [];
    byCall = [];
    const outer = {kind: "region", label: data.target, module: "", parent: null, open: true, low: 0};
    const leaf = (kind, parent, fields) => {
      const part = {kind, parent, low: leaves.length, high: leaves.length + 1, ...fields};
      leaves.push(part);
      return part;
    };
    const region = (parent, part) => {
      if (typeof part === "number") {
        const call = data.calls[part];
        return (byCall[part] = leaf("call", parent, {
          label: call.op,
          second: shapes(call.results),
          call,
          index: part,
        }));
      }
      const made = {
        kind: "region",
        label: part.label,
        module: part.module,
        parent,
        open: false,
        low: leaves.length,
      };
      made.parts = part.parts.map(inner => region(made, inner));
      made.high = leaves.length;
      made.second = `${made.high - made.low} calls`;
      return made;
    };
    const inputs = new Map();
    const every = [...data.calls, ...data.outputs].flatMap(part => part.takes);
    for (const [source, value] of every)
      if (typeof source === "string" && !inputs.has(source))
        inputs.set(source, leaf("input", outer, {label: source, second: short(value)}));
    const parts = data.regions.map(part => region(outer, part));
    const seen = new Set();
    const outputs = data.outputs
      .filter(o => !seen.has(o.name) && seen.add(o.name))
      .map(o => leaf("output", outer, {label: o.name, second: short(o.value), output: o}));
    outer.parts = [...inputs.values(), ...parts, ...outputs];
    outer.high = leaves.length;
    root = outer;

    // uses: every flow of a value from one leaf to another.
    uses = [];
    const connect = (takes, target) =>
      takes.forEach(([source, value]) => {
        const from = typeof source === "string" ? inputs.get(source) : byCall[source];
        uses.push({from: from.low, to: target.low, value});
      });
    data.calls.forEach((call, index) => connect(call.takes, byCall[index]));
    outputs.forEach(part => connect(part.output.takes, part));
    for (const part of leaves) {
      part.out = [];
      part.in = [];
    }
    for (const use of uses) {
      leaves[use.from].out.push(use);
      leaves[use.to].in.push(use);
    }
  }

  const short = value => value.replace(/\bfloat32(?=\[)/g, "");
  const shapes = values => values.map(short).join(", ");
  const clip = (text, room) => (text.length > room ? text.slice(0, room - 1) + "…" : text);
  const inside = (part, number) => part.low <= number && number < part.high;

  function* regionsOf(part) {
    if (part.kind !== "region") return;
    yield part;
    for (const inner of part.parts) yield* regionsOf(inner);
  }

  function unfoldToFit() {
    // Breadth first, so that what is open is as even as possible.
    let shown = root.parts.length;
    const queue = [...root.parts];
    while (queue.length) {
      const part = queue.shift();
      if (part.kind !== "region" || shown + part.parts.length > OPEN_AT_FIRST) continue;
      part.open = true;
      shown += part.parts.length;
      queue.push(...part.parts);
    }
  }

  function reveal(part) {
    for (let outer = part.parent; outer; outer = outer.parent)
      if (!outer.open) {
        outer.open = true;
        stale(outer);
      }
  }

  function stale(part) {
    for (; part; part = part.parent) part.layout = null;
  }

  // ---- layout. Each open region is laid out on its own: its parts, a port for each value that enters or
  // leaves, and lines between them. Layers of a model are alike, so layouts are kept by what they depend on.

  const kept = new Map();

  function layout(region) {
    if (region.layout) return region.layout;
    for (const part of region.parts) if (part.open) layout(part);
    const nodes = region.parts.map(part => ({part, ...size(part)}));
    const place = new Map(); // leaf number -> index of the node that it lies in
    region.parts.forEach((part, index) => {
      for (let n = part.low; n < part.high; n++) place.set(n, index);
    });
    const ports = new Map(),
      edges = new Map();
    const port = (key, side, value) => {
      if (!ports.has(key)) {
        const label = clip(short(value), 34);
        const part = {kind: "port", side, label, value, parent: region, leaf: +key.slice(1)};
        ports.set(key, nodes.push({part, width: label.length * SMALL_CHAR + 16, height: 22}) - 1);
      }
      return ports.get(key);
    };
    const edge = (from, to, use) => {
      const key = from * 100000 + to;
      if (!edges.has(key)) edges.set(key, {from, to, uses: []});
      edges.get(key).uses.push(use);
    };
    for (let number = region.low; number < region.high; number++) {
      const leaf = leaves[number];
      for (const use of leaf.in)
        if (!inside(region, use.from)) edge(port("<" + use.from, "in", use.value), place.get(number), use);
      for (const use of leaf.out) {
        if (!inside(region, use.to)) edge(place.get(number), port(">" + use.from, "out", use.value), use);
        else if (place.get(number) !== place.get(use.to)) edge(place.get(number), place.get(use.to), use);
      }
    }
    const wires = [...edges.values()];
    for (const wire of wires) {
      const ported = nodes[wire.from].part.kind === "port" || nodes[wire.to].part.kind === "port";
      const values = [...new Set(wire.uses.map(use => short(use.value)))];
      wire.label = ported ? "" : values.length > 2 ? `${values.length} values` : clip(values.join(", "), 36);
    }
    const key = JSON.stringify([
      nodes.map(n => [n.width, n.height]),
      wires.map(w => [w.from, w.to, w.label.length]),
    ]);
    if (!kept.has(key)) kept.set(key, arrange(nodes, wires));
    const arranged = kept.get(key);
    return (region.layout = {...arranged, nodes, wires});
  }

  function size(part) {
    if (part.open) {
      const inner = layout(part);
      return {width: Math.max(inner.width, part.label.length * CHAR + 50), height: inner.height + HEAD};
    }
    const wide = Math.max(
      (part.label.length + (part.kind === "region" ? 3 : 0)) * CHAR,
      clip(part.second || "", 40).length * SMALL_CHAR,
    );
    return {width: wide + 22, height: LINE};
  }

  // ---- from layouts to items with absolute places

  function arrangeAll() {
    items = [];
    const walk = (region, x, y, depth) => {
      const found = layout(region);
      found.wires.forEach((wire, index) => {
        const path = found.paths[index];
        items.push({
          kind: "wire",
          wire,
          ends: [found.nodes[wire.from].part, found.nodes[wire.to].part],
          square: path.square,
          points: path.points.map(([px, py]) => [x + px, y + py]),
          at: [x + path.at[0], y + path.at[1]],
          box: bounds(path.points, x, y),
        });
      });
      found.nodes.forEach((node, index) => {
        const [cx, cy] = found.places[index];
        const left = x + cx - node.width / 2,
          top = y + cy - node.height / 2;
        const part = node.part;
        part.box = [left, top, left + node.width, top + node.height];
        items.push({kind: "part", part, box: part.box, depth});
        if (part.open) walk(part, left + (node.width - layout(part).width) / 2, top + HEAD, depth + 1);
      });
    };
    walk(root, 0, 0, 0);
    const whole = layout(root);
    root.box = [0, 0, whole.width, whole.height];
  }

  function bounds(points, x, y) {
    const xs = points.map(p => p[0]),
      ys = points.map(p => p[1]);
    return [x + Math.min(...xs) - 60, y + Math.min(...ys), x + Math.max(...xs) + 60, y + Math.max(...ys)];
  }

  // ---- drawing what is in view

  const drawn = new Map();

  function redraw() {
    for (const element of drawn.values()) element.remove();
    drawn.clear();
    refresh();
  }

  let asked = false;
  function later() {
    if (!asked) {
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        refresh();
      });
    }
  }

  function refresh() {
    const {width, height} = svg.getBoundingClientRect();
    const {x, y, scale} = view;
    world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    const left = (-x - 200) / scale,
      top = (-y - 200) / scale;
    const right = (width - x + 200) / scale,
      bottom = (height - y + 200) / scale;
    const detail = scale < TINY ? 0 : scale < SMALL ? 1 : 2;
    for (const item of items) {
      const [l, t, r, b] = item.box;
      const seen = l < right && r > left && t < bottom && b > top && ((b - t) * scale > SPECK || told(item));
      const element = drawn.get(item);
      if (element && (!seen || element.detail !== detail)) {
        element.remove();
        drawn.delete(item);
      }
      if (seen && !drawn.has(item)) draw(item, detail);
    }
  }

  const told = ({part}) =>
    part && part.kind !== "port" && (isHot(part) || matches.has(part) || chosen === part);

  function draw(item, detail) {
    const element = item.kind === "wire" ? drawWire(item, detail) : drawPart(item, detail);
    element.detail = detail;
    element.item = item;
    drawn.set(item, element);
    const layer = item.kind === "wire" ? "wires" : item.part.open ? "back" : "front";
    if (layer === "back") {
      // outer boxes below inner ones, wherever they come into view first
      element.depth = item.depth;
      const next = [...$("back").children].find(other => other.depth > item.depth);
      $("back").insertBefore(element, next || null);
    } else $(layer).append(element);
  }

  function drawWire(item, detail) {
    const warm =
      isHot(item.ends[0]) &&
      isHot(item.ends[1]) &&
      item.wire.uses.some(use => hot.has(use.from) && hot.has(use.to));
    const group = make(
      "g",
      {},
      make("path", {class: warm ? "wire hot" : "wire", d: curve(item.points, item.square ? 12 : 44)}),
    );
    if (detail === 2 && item.wire.label) {
      const text = make("text", {class: warm ? "shape hot" : "shape", x: item.at[0], y: item.at[1] + 4});
      text.textContent = item.wire.label;
      group.append(text);
    }
    return group;
  }

  function curve(points, radius) {
    // A line with rounded corners.
    const towards = ([x, y], [tx, ty]) => {
      const length = Math.hypot(tx - x, ty - y),
        part = length ? Math.min(radius / length, 0.5) : 0;
      return [x + (tx - x) * part, y + (ty - y) * part].map(round);
    };
    let d = `M${points[0].map(round)}`;
    for (let i = 1; i < points.length - 1; i++)
      d +=
        ` L${towards(points[i], points[i - 1])}` +
        ` Q${points[i].map(round)} ${towards(points[i], points[i + 1])}`;
    return `${d} L${points.at(-1).map(round)}`;
  }
  const round = n => Math.round(n * 10) / 10;

  function drawPart({part, box: [l, t, r, b], depth}, detail) {
    const names = ["item", part.kind];
    if (part.kind === "region") names.push("group");
    if (part.open) names.push("open");
    if (depth % 2) names.push("even");
    if (isHot(part)) names.push("hot");
    if (failing !== null && !part.open && part.kind !== "port" && inside(part, failing)) names.push("fails");
    if (matches.has(part)) names.push("matched");
    if (chosen === part) names.push("chosen");
    const group = make(
      "g",
      {class: names.join(" "), role: "button", tabindex: -1, "aria-label": spoken(part)},
      make("rect", {
        x: round(l),
        y: round(t),
        width: round(r - l),
        height: round(b - t),
        rx: part.kind === "port" ? 11 : 6,
      }),
    );
    if (part.kind === "region") group.setAttribute("aria-expanded", String(!!part.open));
    if (detail > 0) {
      const text = (name, x, y, content) => {
        const element = make("text", {x: round(x), y: round(y), ...(name ? {class: name} : {})});
        element.textContent = content;
        group.append(element);
      };
      if (part.kind === "port") text("second", l + 8, t + 15, part.label);
      else if (part.open) text("", l + 10, t + 18, `▾ ${part.label}`);
      else {
        text("", l + 11, t + 19, part.kind === "region" ? `▸ ${part.label}` : part.label);
        if (detail === 2) text("second", l + 11, t + 36, clip(part.second || "", 40));
      }
    }
    return group;
  }

  function isHot(part) {
    if (part.kind === "port") return hot.has(part.leaf) && isHot(part.parent);
    for (const number of hot) if (inside(part, number)) return true;
    return false;
  }

  function spoken(part) {
    if (part.kind === "port") return `${part.side === "in" ? "enters" : "leaves"}: ${part.value}`;
    if (part.kind === "region")
      return `module ${part.label}, ${part.second}, ${part.open ? "unfolded" : "folded"}`;
    if (part.kind !== "call") return `${part.kind} ${part.label}, ${part.second}`;
    const where = part.call.module ? `, in ${part.call.module}` : "";
    return `${part.label}, gives ${part.call.results.join(", ")}${where}`;
  }

  // ---- what the pointer and the side panel tell of a part

  function toEditor([where, , , , , column, path]) {
    // A link that opens the line in an editor, on a machine where the file has this path.
    const line = where.slice(where.lastIndexOf(":") + 1);
    const to = encodeURI(path.replaceAll("\\", "/").replace(/^\/*/, "/")).replace(/[?#]/g, encodeURIComponent);
    return make("a", {class: "editor", href: `vscode://file${to}:${line}:${column}`}, "Open in VS Code");
  }

  function excerpt([where, name, code, start, stop]) {
    const box = make("div", {class: "source"});
    if (where !== "?") box.append(make("div", {class: "faint"}, name ? `${where} in ${name}` : where));
    if (code) {
      const line = make("code", {class: "excerpt"}, code.slice(0, start));
      line.append(make("mark", {}, code.slice(start, stop)), code.slice(stop));
      box.append(line);
    }
    return box;
  }

  function describe(part) {
    const box = make("div", {});
    const say = (text, name = "") => box.append(make("p", name ? {class: name} : {}, text));
    if (part.kind === "port") {
      const leaf = leaves[part.leaf];
      say(part.value, "mono");
      say(part.side === "in" ? `comes from ${named(leaf)}` : `made by ${named(leaf)}, goes on`, "faint");
      return box;
    }
    if (part.kind === "region") {
      box.append(make("p", {}, make("b", {}, part.label)));
      say(`${part.second}; ${part.open ? "click to fold" : "click to unfold"}`, "faint");
      return box;
    }
    box.append(make("p", {}, make("b", {}, named(part))));
    if (part.kind !== "call") {
      say(part.second, "mono");
      return box;
    }
    say(part.call.results.join(", "), "mono");
    const origin = report.origins[part.call.origin];
    box.append(excerpt(origin));
    if (origin.at(-1)) box.append(toEditor(origin));
    for (const [source, value] of part.call.takes)
      say(`takes ${value} from ${typeof source === "string" ? source : named(byCall[source])}`, "faint mono");
    report.findings.filter(f => f.call === part.index).forEach(f => say(`${f.code}: ${f.message}`));
    return box;
  }

  const named = part =>
    part.kind === "call" && part.call.module ? `${part.label} in ${part.call.module}` : part.label;

  function side() {
    const box = $("side");
    box.replaceChildren();
    const head = text => box.append(make("h2", {}, text));
    head("Inputs");
    report.inputs.forEach(line => box.append(make("div", {class: "mono"}, line)));
    for (const [words, condition] of report.conditions) {
      head(words);
      box.append(make("p", {class: "mono condition"}, condition));
    }
    if (report.dims.length && report.verdict !== "refuted") {
      const list = make("dl", {});
      for (const [name, fact] of report.dims)
        list.append(make("dt", {class: "mono"}, name), make("dd", {}, fact));
      box.append(list);
    }
    report.examples.forEach(line => box.append(make("p", {class: "faint"}, line)));
    if (chosen && chosen.kind !== "region") {
      head("Selected");
      box.lastChild.id = "selected";
      box.append(describe(chosen));
    }
    head(report.findings.length ? "Findings" : "No findings");
    report.findings.forEach((finding, index) => {
      const button = make(
        "button",
        {class: `finding ${finding.severity}`, "aria-pressed": String(index === at), "data-finding": index},
        make("b", {}, finding.code),
        finding.message,
        excerpt(finding.line),
      );
      finding.more.forEach(line => button.append(make("div", {class: "faint"}, line)));
      button.addEventListener("click", () => toFinding(index));
      box.append(button);
      if (finding.line.at(-1)) box.append(toEditor(finding.line));
    });
    if (report.suppressed) box.append(make("p", {class: "faint"}, `${report.suppressed} suppressed`));
    head("Keys");
    const keys = make("p", {class: "faint"});
    for (const [key, what] of [
      ["↑ ↓", "previous, next"],
      ["← →", "outwards, into"],
      ["Enter", "fold, unfold"],
      ["+ −", "zoom"],
      ["0", "whole graph"],
      ["/", "search"],
      ["f", "next finding"],
      ["Esc", "clear"],
    ])
      keys.append(make("kbd", {}, key), ` ${what}  `);
    box.append(keys);
  }

  // ---- findings: the chain of calls that leads to the line that fails

  function toFinding(index, move = true) {
    at = index;
    const finding = report.findings[index];
    hot = new Set();
    failing = null;
    if (finding && finding.call !== null) {
      const end = byCall[finding.call];
      failing = end.low;
      hot = between(
        finding.chain.map(call => byCall[call].low),
        end.low,
      );
      for (const number of hot)
        if (leaves[number].kind === "call" && finding.chain.includes(leaves[number].index))
          reveal(leaves[number]);
      reveal(end);
      chosen = end;
    }
    arrangeAll();
    side();
    if (move && failing !== null)
      show(
        [...hot].map(number => visible(leaves[number])),
        leaves[failing],
      );
    redraw();
  }

  function between(starts, end) {
    // All calls on a way from one of the starts to the end.
    const before = walk(end, use => use.from, "in"),
      after = new Set();
    for (const start of starts)
      for (const number of walk(start, use => use.to, "out", end)) after.add(number);
    return new Set([end, ...starts, ...[...before].filter(number => after.has(number))]);
  }

  function walk(start, next, side, last = Infinity) {
    const seen = new Set([start]),
      queue = [start];
    while (queue.length)
      for (const use of leaves[queue.pop()][side])
        if (next(use) <= last && !seen.has(next(use))) {
          seen.add(next(use));
          queue.push(next(use));
        }
    return seen;
  }

  function visible(part) {
    // The part itself, or the outermost folded region around it.
    let found = part;
    for (let outer = part.parent; outer; outer = outer.parent) if (!outer.open) found = outer;
    return found;
  }

  // ---- moving the view

  function show(parts, focus = null) {
    // All of the parts if they fit at a readable size, else the one in focus.
    const {width, height} = svg.getBoundingClientRect();
    const boxes = parts.map(part => part.box);
    const [l, t, r, b] = [0, 1, 2, 3].map(i => Math[i < 2 ? "min" : "max"](...boxes.map(box => box[i])));
    const scale = Math.min(width / (r - l + 60), height / (b - t + 60), 1.25);
    if (scale < 0.45 && focus) return center(focus, Math.max(view.scale, 0.8));
    view = {scale, x: (width - (l + r) * scale) / 2, y: (height - (t + b) * scale) / 2};
    later();
  }

  function center(part, scale = view.scale) {
    const {width, height} = svg.getBoundingClientRect();
    const [l, t, r, b] = visible(part).box;
    const tall = (b - t) * scale > height; // of a tall region the top is shown
    view = {
      scale,
      x: width / 2 - ((l + r) / 2) * scale,
      y: tall ? 30 - t * scale : height / 2 - ((t + b) / 2) * scale,
    };
    later();
  }

  function zoom(factor, cx, cy) {
    const scale = Math.min(Math.max(view.scale * factor, 0.005), 4);
    view = {
      scale,
      x: cx - ((cx - view.x) * scale) / view.scale,
      y: cy - ((cy - view.y) * scale) / view.scale,
    };
    later();
  }

  function open() {
    // At first: all of it if it can be read so, else its beginning.
    const {width, height} = svg.getBoundingClientRect();
    const [, , w, h] = root.box;
    const scale = Math.min(width / w, height / h, 1);
    if (scale >= 0.45) return show([root]);
    const wide = Math.min(Math.max(width / w, 0.45), 1);
    view = {scale: wide, x: (width - w * wide) / 2, y: 10};
    const first = root.parts[0];
    if (first && (first.box[2] * wide + view.x > width || first.box[0] * wide + view.x < 0))
      view.x = width / 2 - ((first.box[0] + first.box[2]) / 2) * wide;
  }

  // ---- folding, choosing, searching

  function toggle(part) {
    // The part stays where it is on the screen.
    const before = [part.box[0] * view.scale + view.x, part.box[1] * view.scale + view.y];
    part.open = !part.open;
    stale(part);
    arrangeAll();
    view.x = before[0] - part.box[0] * view.scale;
    view.y = before[1] - part.box[1] * view.scale;
    redraw();
  }

  function choose(part, move) {
    chosen = part;
    side();
    $("selected")?.scrollIntoView({block: "nearest"});
    redraw();
    if (move) {
      const {width, height} = svg.getBoundingClientRect();
      const [l, t, r, b] = part.box.map((n, i) => n * view.scale + (i % 2 ? view.y : view.x));
      if (l < 20 || t < 20 || r > width - 20 || b > height - 20) center(part);
    }
    $("said").textContent = spoken(part);
  }

  function foldAll(open) {
    for (const region of regionsOf(root))
      if (region !== root) {
        region.open = open;
        region.layout = null;
      }
    root.layout = null;
    const kept = chosen && chosen.kind !== "port" ? chosen : middle();
    arrangeAll();
    const {height} = svg.getBoundingClientRect();
    if (root.box[3] * 0.45 > height) center(kept, Math.max(view.scale, 0.6));
    else show([root]);
    redraw();
  }

  function middle() {
    // The call that is nearest to the middle of what is shown.
    const {width, height} = svg.getBoundingClientRect();
    const x = (width / 2 - view.x) / view.scale,
      y = (height / 2 - view.y) / view.scale;
    const far = ({box: [l, t, r, b]}) => Math.hypot((l + r) / 2 - x, (t + b) / 2 - y);
    const near = items
      .filter(item => item.kind === "part" && item.part.kind !== "port" && !item.part.open)
      .reduce((a, b) => (far(a) <= far(b) ? a : b));
    return leaves[near.part.low];
  }

  let found = [],
    turn = -1;

  function search() {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? leaves.filter(part => words.every(word => haystack(part).includes(word))) : [];
    turn = -1;
    mark();
    $("hits").textContent = words.length ? (found.length === 1 ? "1 match" : `${found.length} matches`) : "";
    redraw();
  }

  function mark() {
    matches = new Set(found.slice(0, MATCHES_SHOWN).map(visible));
  }

  function haystack(part) {
    if (!part.hay) {
      const call = part.call;
      const origin = call ? report.origins[call.origin].slice(0, 3) : [];
      part.hay = [part.label, part.second, ...(call ? [call.module, ...call.results, ...origin] : [])]
        .join(" ")
        .toLowerCase();
    }
    return part.hay;
  }

  function nextMatch(step) {
    if (!found.length) return;
    turn = (turn + step + found.length) % found.length;
    const part = found[turn];
    reveal(part);
    mark();
    arrangeAll();
    chosen = part;
    side();
    center(part, Math.max(view.scale, 0.7));
    redraw();
    $("hits").textContent = `${turn + 1} of ${found.length}`;
    $("said").textContent = spoken(part);
  }

  // ---- pointer

  let drag = null;
  svg.addEventListener("pointerdown", event => {
    if (event.button) return;
    drag = {x: event.clientX, y: event.clientY, moved: false};
  });
  window.addEventListener("pointermove", event => {
    if (drag) {
      const dx = event.clientX - drag.x,
        dy = event.clientY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      drag = {x: event.clientX, y: event.clientY, moved: true};
      svg.classList.add("dragging");
      view.x += dx;
      view.y += dy;
      tooltip.hidden = true;
      later();
    }
  });
  window.addEventListener("pointerup", () => {
    svg.classList.remove("dragging");
    setTimeout(() => {
      drag = null;
    });
  });
  window.addEventListener("pointercancel", () => {
    drag = null;
  });
  svg.addEventListener(
    "wheel",
    event => {
      event.preventDefault();
      const {left, top} = svg.getBoundingClientRect();
      zoom(
        Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)),
        event.clientX - left,
        event.clientY - top,
      );
    },
    {passive: false},
  );
  const partOf = target => target.closest?.(".item")?.item.part;
  svg.addEventListener("click", event => {
    if (drag?.moved) return;
    const part = partOf(event.target);
    if (!part) return;
    if (part.kind === "region") {
      chosen = part;
      toggle(part);
    } else if (part.kind === "port") {
      reveal(leaves[part.leaf]);
      arrangeAll();
      chosen = leaves[part.leaf];
      side();
      center(chosen);
      redraw();
    } else choose(part, false);
  });
  svg.addEventListener("mousemove", event => {
    const part = partOf(event.target);
    if (!part || drag?.moved) {
      tooltip.hidden = true;
      return;
    }
    if (tooltip.part !== part || tooltip.hidden) {
      tooltip.replaceChildren(describe(part));
      tooltip.part = part;
      tooltip.hidden = false;
    }
    const stage = $("stage").getBoundingClientRect();
    const x = event.clientX - stage.left + 14,
      y = event.clientY - stage.top + 14;
    tooltip.style.left = `${Math.max(0, Math.min(x, stage.width - tooltip.offsetWidth - 8))}px`;
    const above = Math.max(0, y - tooltip.offsetHeight - 28);
    tooltip.style.top = `${y + tooltip.offsetHeight > stage.height ? above : y}px`;
  });
  svg.addEventListener("mouseleave", () => {
    tooltip.hidden = true;
  });

  // ---- keys: the graph is one stop of the tab key; arrows go through what is visible, in program order

  const shown = () =>
    items
      .filter(item => item.kind === "part" && item.part.kind !== "port")
      .map(item => item.part)
      .sort((a, b) => a.low - b.low || b.high - a.high);

  function step(by) {
    const parts = shown();
    const index = chosen ? parts.indexOf(visible(chosen)) : -1;
    const next = parts[index < 0 ? 0 : Math.min(Math.max(index + by, 0), parts.length - 1)];
    if (next) choose(next, true);
  }

  const KEYS = {
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    ArrowRight: () => {
      if (chosen?.kind === "region" && !chosen.open) toggle(chosen);
      else step(1);
    },
    ArrowLeft: () => {
      if (chosen?.kind === "region" && chosen.open) toggle(chosen);
      else if (chosen?.parent && chosen.parent !== root) choose(chosen.parent, true);
    },
    Enter: () => {
      if (chosen?.kind === "region") toggle(chosen);
      else if (chosen) center(chosen, Math.max(view.scale, 0.8));
    },
    " ": () => KEYS.Enter(),
    Home: () => {
      chosen = null;
      step(1);
    },
    End: () => {
      chosen = shown().at(-1);
      choose(chosen, true);
    },
  };
  const ANYWHERE = {
    "+": () => zoomMiddle(1.25),
    "=": () => zoomMiddle(1.25),
    "-": () => zoomMiddle(0.8),
    0: () => show([root]),
    "/": () => {
      $("search").focus();
      $("search").select();
    },
    f: () => {
      if (report.findings.length) toFinding((at + 1) % report.findings.length);
    },
    Escape: () => {
      $("search").value = "";
      search();
      chosen = null;
      hot = new Set();
      failing = null;
      at = -1;
      side();
      redraw();
    },
  };
  function zoomMiddle(factor) {
    const {width, height} = svg.getBoundingClientRect();
    zoom(factor, width / 2, height / 2);
  }
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input, select");
    if (event.target === $("search")) {
      if (event.key === "Enter") {
        event.preventDefault();
        nextMatch(event.shiftKey ? -1 : 1);
      }
      if (event.key === "Escape") {
        ANYWHERE.Escape();
        svg.focus();
      }
      return;
    }
    const act = (svg.contains(event.target) && KEYS[event.key]) || (!typing && ANYWHERE[event.key]);
    if (act) {
      event.preventDefault();
      act();
    }
  });

  // ---- the header

  $("fold").addEventListener("click", () => foldAll(false));
  $("unfold").addEventListener("click", () => foldAll(true));
  $("fit").addEventListener("click", () => show([root]));
  $("search").addEventListener("input", search);
  $("theme").addEventListener("click", () => {
    const style = document.documentElement,
      dark = matchMedia("(prefers-color-scheme: dark)").matches;
    style.dataset.theme = (style.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  });
  window.addEventListener("resize", later);

  function start(index) {
    drawn.forEach(element => element.remove());
    drawn.clear();
    view = {x: 0, y: 0, scale: 1};
    hot = new Set();
    matches = new Set();
    failing = null;
    chosen = null;
    at = -1;
    found = [];
    build(REPORTS[index]);
    $("verdict").textContent = report.verdict;
    $("verdict").className = report.verdict;
    $("headline").textContent = report.headline;
    unfoldToFit();
    arrangeAll();
    open();
    const first = report.findings.findIndex(f => f.call !== null && f.severity !== "note");
    if (first >= 0) toFinding(first);
    else {
      side();
      redraw();
    }
  }

  REPORTS.forEach((one, index) =>
    $("target").append(make("option", {value: index}, `${one.target} (${one.verdict})`)),
  );
  if (REPORTS.length === 1) {
    const name = make("b", {id: "target"}, REPORTS[0].target);
    $("target").replaceWith(name);
  } else $("target").addEventListener("change", event => start(+event.target.value));
  if (REPORTS.length) start(0);
})();
