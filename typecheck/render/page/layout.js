// Places boxes and the lines between them: by dagre, and in columns where that would be one long row.
"use strict";

const PAD = 14; // around what is laid out
const CHAR_OF_EDGE = 6.7; // width of a character on an edge
const BESIDE = 7; // between a line and its label, which stands to the right of it

// nodes: [{width, height}]; wires: [{from, to, label}] by places in the list of nodes.
// Gives {width, height, places: [[x, y] of each node's middle], paths: [{points, at, square} of each wire]}.
function arrange(nodes, wires) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({
    rankdir: "TB",
    nodesep: 22,
    edgesep: 14,
    ranksep: 34,
    ranker: nodes.length > 60 ? "longest-path" : "network-simplex",
  });
  nodes.forEach((node, index) => graph.setNode(String(index), {width: node.width, height: node.height}));
  wires.forEach(wire =>
    graph.setEdge(
      String(wire.from),
      String(wire.to),
      wire.label
        ? {width: wire.label.length * CHAR_OF_EDGE, height: 15, labelpos: "r", labeloffset: BESIDE}
        : {width: 0, height: 0},
    ),
  );
  dagre.layout(graph);
  const whole = graph.graph();
  return columns(nodes, wires, {
    width: (whole.width || 0) + 2 * PAD,
    height: (whole.height || 0) + 2 * PAD,
    places: nodes.map((_, index) => {
      const p = graph.node(String(index));
      return [p.x + PAD, p.y + PAD];
    }),
    paths: wires.map(wire => {
      const found = graph.edge(String(wire.from), String(wire.to));
      const points = found.points.map(p => [p.x + PAD, p.y + PAD]);
      // Values leave a box at its lower side and enter at the upper one, however tall the box is.
      points[0] = leaving(graph.node(String(wire.from)), 1, points[1]);
      points[points.length - 1] = leaving(graph.node(String(wire.to)), -1, points[points.length - 2]);
      return {points, at: [found.x + PAD, found.y + PAD]};
    }),
  });
}

// A long chain is cut into columns, as text is into lines. A value that goes on in a later column leaves its
// own at the bottom, goes up in the gutter beside it and over those in between, and enters from the top.

const GUTTER = 70; // between columns
const OVER = 80; // above them
const LANE = 7; // between values that go side by side,
const LANES = 7; // of which there are as many until they share lanes

function columns(nodes, wires, flat) {
  const {width, height} = flat;
  const count = Math.min(Math.round(Math.sqrt((1.5 * height) / (width + GUTTER))), Math.floor(height / 600));
  if (count < 2) return flat;
  const cuts = cutsOf(nodes, flat, count);
  const column = y => cuts.findLastIndex(cut => cut <= y);
  const of = flat.places.map(([, y]) => column(y));
  // Of a value that goes on in another column, only the parts in its first and its last column are kept.
  const parts = wires.map((wire, index) => {
    const {points} = flat.paths[index],
      from = of[wire.from],
      to = of[wire.to];
    return from === to
      ? {[from]: points}
      : {
          [from]: points.filter(([, y], i) => i === 0 || y < cuts[from + 1]),
          [to]: points.filter(([, y], i) => i === points.length - 1 || y > cuts[to]),
        };
  });
  const left = [],
    right = [];
  cuts.forEach((_, c) => {
    const xs = [
      ...nodes.flatMap((node, i) =>
        of[i] === c ? [flat.places[i][0] - node.width / 2, flat.places[i][0] + node.width / 2] : [],
      ),
      ...parts.flatMap(part => (part[c] ?? []).map(([x]) => x)),
    ];
    left.push(Math.min(...xs));
    right.push(Math.max(...xs));
  });
  const at = []; // where each column begins
  let x = PAD;
  cuts.forEach((_, c) => {
    at.push(x);
    x += right[c] - left[c] + GUTTER;
  });
  const shift = (c, [px, py]) => [px - left[c] + at[c], py - cuts[c] + OVER];
  const ends = cuts.map((cut, c) => (cuts[c + 1] ?? height) - cut + OVER);
  let lane = 0;
  const paths = wires.map((wire, index) => {
    const from = of[wire.from],
      to = of[wire.to];
    const [first, last] = [from, to].map(c => parts[index][c].map(p => shift(c, p)));
    if (from === to) return {points: first, at: shift(from, flat.paths[index].at)};
    const off = LANE * (lane++ % LANES),
      up = at[from] + right[from] - left[from] + 12 + off,
      top = OVER - 12 - off;
    const bottom = ends[from] - 4 + off / 2;
    const routed = [...first, [first.at(-1)[0], bottom], [up, bottom], [up, top], [last[0][0], top], ...last];
    const beside = BESIDE + (wire.label.length * CHAR_OF_EDGE) / 2;
    return {points: routed, at: [first[0][0] + beside, first[0][1] + 17], square: true};
  });
  return {
    width: x - GUTTER + PAD + (lane ? 12 : 0),
    height: Math.max(...ends) + 40,
    places: flat.places.map((p, i) => shift(of[i], p)),
    paths,
  };
}

function cutsOf(nodes, {places, paths, height}, count) {
  // Between rows of nodes, near to where columns would be equal, where the fewest values cross.
  const rows = [...new Set(places.map(([, y]) => y))].sort((a, b) => a - b);
  const cuts = [0];
  for (let c = 1; c < count; c++) {
    const ideal = (height * c) / count;
    let best = null;
    for (let i = 1; i < rows.length; i++) {
      const high = Math.max(
        ...nodes.map((n, k) => (places[k][1] < rows[i] ? places[k][1] + n.height / 2 : 0)),
      );
      const low = Math.min(
        ...nodes.map((n, k) => (places[k][1] >= rows[i] ? places[k][1] - n.height / 2 : height)),
      );
      const cut = (high + low) / 2;
      if (cut <= cuts.at(-1) || Math.abs(cut - ideal) > height / count / 2.5) continue;
      const crossing = paths.filter(({points}) => points[0][1] < cut && points.at(-1)[1] > cut).length;
      const cost = crossing + (6 * Math.abs(cut - ideal) * count) / height;
      if (!best || cost < best.cost) best = {cost, cut};
    }
    if (best) cuts.push(best.cut);
  }
  return cuts;
}

function leaving({x, y, width, height}, side, [towards]) {
  const room = Math.max(width / 2 - 14, 0);
  return [Math.min(Math.max(towards, x + PAD - room), x + PAD + room), y + PAD + (side * height) / 2];
}
