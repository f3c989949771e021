// One graph of a report: unpacks it and draws it.
// Graphs are in compressed pieces (graphxai_data/report/packed.py), opened on demand.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const meta = JSON.parse(byId("meta").textContent);
const KINDS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i2: Int16Array, f4: Float32Array, f8: Float64Array };

// ---- Pieces -------------------------------------------------------------------------------------

async function unpack(element) {
  const bytes = Uint8Array.from(atob(element.textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const whole = await new Response(stream).arrayBuffer();
  const length = new DataView(whole).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 4, length)));
  const piece = { drawings: header.drawings || {} };
  for (const [name, [kind, offset, size]] of Object.entries(header.arrays)) {
    const begin = 4 + length + offset;
    piece[name] = new KINDS[kind](whole.slice(begin, begin + size * KINDS[kind].BYTES_PER_ELEMENT));
  }
  return piece;
}

const opened = new Map();
function piece(k) {
  if (!opened.has(k)) opened.set(k, unpack(byId(`piece-${k}`)));
  return opened.get(k);
}

// One graph with all its values; `place` is its position on this page.
async function graphAt(place) {
  const p = await piece(Math.floor(place / meta.per_piece));
  const i = place % meta.per_piece;
  const [first, last] = [p.node_ptr[i], p.node_ptr[i + 1]];
  const width = meta.values.length;
  const graph = {
    place, id: index.graph_id[place], y: index.y[place], split: index.split[place],
    nodes: last - first, drawing: p.drawings[index.graph_id[place]] || "",
    values: (v, k) => p.values[(first + v) * width + k],
    mask: p.mask ? p.mask.subarray(first, last) : null,
    bits: p.bits_low ? [p.bits_low, p.bits_high].map((half) => half.subarray(first, last)) : null,
    weight: p.weight ? p.weight.subarray(first, last) : null,
    nodeY: p.node_y ? p.node_y.subarray(first, last) : null,
    scores: (e) => {
      const scale = p[`scale_${e}`] ? p[`scale_${e}`][i] : NaN;
      return Number.isNaN(scale) ? null
        : { scale, relative: Float32Array.from(p[`scores_${e}`].subarray(first, last), (s) => s / meta.scores) };
    },
  };
  if (p.segments) {
    const pixels = meta.rows * meta.columns;
    graph.segments = p.segments.subarray(i * pixels, (i + 1) * pixels);
  } else {
    const all = p.labels.length;
    const at = (bytes, v) => ((bytes[v] << 8) | bytes[all + v]) * meta.side / meta.places;
    graph.x = (v) => at(p.places_x, first + v);
    graph.y_ = (v) => at(p.places_y, first + v);
    graph.label = (v) => meta.labels[p.labels[first + v]];
    const [begin, end] = [p.edge_ptr[i], p.edge_ptr[i + 1]];
    graph.edges = Array.from({ length: end - begin }, (_, e) =>
      [p.sources[begin + e], p.targets[begin + e], p.orders[begin + e]]);
  }
  return graph;
}

// ---- Words --------------------------------------------------------------------------------------

const number = (value) => Number.isInteger(value) ? String(value)
  : Math.abs(value) >= 0.01 && Math.abs(value) < 1e4 ? value.toFixed(3) : value.toExponential(2);
const className = (y) => meta.numbers ? number(y) : meta.classes[y] ?? String(y);

// The alternatives that a node belongs to, from 0.
const alternativesOf = (graph, v) => Array.from({ length: 63 }, (_, j) => j)
  .filter((j) => (graph.bits[Math.floor(j / 32)][v] >>> (j % 32)) & 1);
const together = (graph, a, b) => graph.bits
  ? graph.bits.some((half) => half[a] & half[b]) : graph.mask && graph.mask[a] && graph.mask[b];
const isSigned = (graph) => graph.weight && !graph.bits;

function truthWords(graph) {
  if (isSigned(graph)) return "Weights";
  if (!graph.mask) return graph.nodeY ? "Classes of nodes" : "Graph";
  if (!graph.mask.some(Boolean)) return "No rationale (null)";
  const used = new Set(graph.bits ? Array.from(graph.mask, (_, v) => alternativesOf(graph, v)).flat() : [0]);
  return used.size > 1 ? `${used.size} alternative rationales` : "Rationale";
}

function rationaleWords(graph, v) {
  if (!graph.mask[v]) return "no";
  return graph.bits ? alternativesOf(graph, v).map((j) => j + 1).join(", ") : "yes";
}

function valueOf(graph, v, k) {
  const { of, low, high } = meta.values[k];
  const stored = graph.values(v, k);
  return of ? of[stored] : number(low + (stored / 65535) * (high - low));
}

function nodeWords(graph, v, scores) {
  const words = [`node ${v}`, ...meta.values.map((value, k) => `${value.name} ${valueOf(graph, v, k)}`)];
  if (graph.nodeY) words.push(`class ${className(graph.nodeY[v])}`);
  if (graph.weight) words.push(`weight ${number(graph.weight[v])}`);
  if (graph.mask && !isSigned(graph)) {
    const which = graph.bits ? `in alternative ${rationaleWords(graph, v)}` : "in the rationale";
    words.push(graph.mask[v] ? which : "not in the rationale");
  }
  if (scores) words.push(`contribution ${number(scores.relative[v] * scores.scale)}`);
  return words.join(", ");
}

// ---- Drawing ------------------------------------------------------------------------------------

function make(name, attributes = {}, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// The colour of a node: orange in the rationale, others in further alternatives; red for the label,
// blue against it.
function paint(graph, v, scores) {
  if (scores) {
    const s = scores.relative[v];
    return { fill: s < 0 ? "var(--against)" : "var(--for)", opacity: Math.abs(s) };
  }
  if (graph.nodeY) return { fill: graph.nodeY[v] ? "var(--rationale)" : "var(--soft)", opacity: 1 };
  if (isSigned(graph)) {
    const largest = graph.weight.reduce((most, w) => Math.max(most, Math.abs(w)), 0) || 1;
    return { fill: graph.weight[v] < 0 ? "var(--against)" : "var(--for)", opacity: Math.abs(graph.weight[v]) / largest };
  }
  const which = graph.bits ? alternativesOf(graph, v) : [0];
  const colour = which.length > 1 ? "shared" : which[0] % 4 ? `alternative-${which[0] % 4}` : "rationale";
  return { fill: `var(--${colour})`, opacity: graph.mask && graph.mask[v] ? 1 : 0 };
}

// As wide as the square of the layout, and as high as the graph needs.
function frame(graph) {
  if (graph.segments) return `0 0 ${meta.side} ${(meta.side * meta.rows) / meta.columns}`;
  const ys = Array.from({ length: graph.nodes }, (_, v) => graph.y_(v));
  const margin = 14;
  const [top, bottom] = [Math.min(...ys) - margin, Math.max(...ys) + margin];
  const height = Math.max(bottom - top, 0.45 * meta.side);
  return `0 ${((top + bottom - height) / 2).toFixed(1)} ${meta.side} ${height.toFixed(1)}`;
}

function picture(graph, scores, title) {
  const svg = make("svg", {
    viewBox: frame(graph), class: "graph", role: "group", tabindex: "0",
    "aria-label": `${title} of graph ${graph.id}, ${graph.nodes} nodes; arrow keys move from node to node`,
  });
  if (graph.segments) drawDigit(svg, graph, scores);
  else drawNodes(svg, graph, scores);
  return svg;
}

function addNode(svg, graph, v, scores, shape) {
  shape.classList.add("node");
  if (graph.mask && graph.mask[v] && !isSigned(graph)) shape.classList.add("rationale");
  shape.setAttribute("tabindex", "-1");
  shape.setAttribute("role", "img");
  shape.setAttribute("aria-label", nodeWords(graph, v, scores));
  shape.dataset.node = v;
  svg.append(shape);
}

function drawNodes(svg, graph, scores) {
  const isMolecule = meta.labels.length > 1;
  if (!graph.drawing) svg.append(...lines(graph, scores));
  if (!graph.drawing && isMolecule) svg.append(...letters(graph, "backed"));
  const radius = isMolecule ? 8 : graph.nodes > 60 ? 4 : 7;
  for (let v = 0; v < graph.nodes; v += 1) {
    const { fill, opacity } = paint(graph, v, scores);
    const shape = make("circle", {
      cx: graph.x(v).toFixed(1), cy: graph.y_(v).toFixed(1), r: radius,
      class: isMolecule ? "atom" : "dot",
    });
    if (isMolecule) {
      shape.style.fill = fill;
      shape.style.fillOpacity = 0.6 * opacity;
    } else { // edges end at a dot
      shape.style.fill = `color-mix(in srgb, ${fill} ${(100 * opacity).toFixed(0)}%, var(--paper))`;
    }
    addNode(svg, graph, v, scores, shape);
  }
  // Letters and bonds on top of the colours, so that they stay legible.
  if (graph.drawing) {
    const base = make("g", { class: "molecule" });
    base.innerHTML = graph.drawing; // by RDKit, from a molecule that it parsed
    svg.append(base);
  } else if (isMolecule) svg.append(...letters(graph, ""));
}

function lines(graph, scores) {
  const paths = { plain: "", rationale: "" };
  for (const [a, b, order] of graph.edges) {
    const inside = !scores && !isSigned(graph) && together(graph, a, b);
    const [dx, dy] = [graph.x(b) - graph.x(a), graph.y_(b) - graph.y_(a)];
    const unit = 2.2 / (Math.hypot(dx, dy) || 1);
    for (let line = 0; line < order; line += 1) {
      const aside = (line - (order - 1) / 2) * 2 * unit;
      const [sx, sy] = [-dy * aside, dx * aside];
      paths[inside ? "rationale" : "plain"] +=
        `M${(graph.x(a) + sx).toFixed(1)} ${(graph.y_(a) + sy).toFixed(1)}` +
        `L${(graph.x(b) + sx).toFixed(1)} ${(graph.y_(b) + sy).toFixed(1)}`;
    }
  }
  const crowded = graph.edges.length > 500 ? " crowded" : "";
  return Object.entries(paths).map(([kind, d]) => make("path", { d, class: `edges ${kind}${crowded}` }));
}

function letters(graph, backed) {
  const texts = [];
  for (let v = 0; v < graph.nodes; v += 1) {
    if (!graph.label(v)) continue;
    texts.push(make("text", {
      x: graph.x(v).toFixed(1), y: graph.y_(v).toFixed(1), class: `letter ${graph.label(v)} ${backed}`,
    }, graph.label(v)));
  }
  return texts;
}

// Every superpixel is a path of the horizontal runs of its pixels.
function drawDigit(svg, graph, scores) {
  const side = meta.side / meta.columns;
  const runs = Array.from({ length: graph.nodes }, () => "");
  for (let row = 0; row < meta.rows; row += 1) {
    for (let from = 0; from < meta.columns;) {
      const v = graph.segments[row * meta.columns + from];
      let to = from;
      while (to < meta.columns && graph.segments[row * meta.columns + to] === v) to += 1;
      const [x, y, width] = [from, row, to - from].map((n) => (n * side).toFixed(1));
      runs[v] += `M${x} ${y}h${width}v${side.toFixed(1)}h-${width}z`;
      from = to;
    }
  }
  for (let v = 0; v < graph.nodes; v += 1) {
    const shape = make("path", { d: runs[v], class: "superpixel" });
    const ink = graph.values(v, 0) / 65535;
    const { fill, opacity } = paint(graph, v, scores);
    const [colour, share] = scores ? [fill, opacity] : ["var(--ink)", ink];
    shape.style.fill = `color-mix(in srgb, ${colour} ${(100 * share).toFixed(0)}%, var(--paper))`;
    addNode(svg, graph, v, scores, shape);
  }
  svg.append(make("path", { d: between(graph, side, (v) => v), class: "border" }),
    make("path", { d: between(graph, side, (v) => Boolean(v >= 0 && graph.mask && graph.mask[v])), class: "outline" }));
}

// Lines between pixels whose superpixels differ in kind; outside the image, the superpixel is -1.
function between(graph, side, kind) {
  const { rows, columns } = meta;
  const at = (row, column) => kind(row < 0 || column < 0 || row >= rows || column >= columns
    ? -1 : graph.segments[row * columns + column]);
  let d = "";
  for (let row = 0; row <= rows; row += 1) {
    for (let column = 0; column <= columns; column += 1) {
      const [x, y] = [(column * side).toFixed(1), (row * side).toFixed(1)];
      if (column < columns && at(row, column) !== at(row - 1, column)) d += `M${x} ${y}h${side.toFixed(1)}`;
      if (row < rows && at(row, column) !== at(row, column - 1)) d += `M${x} ${y}v${side.toFixed(1)}`;
    }
  }
  return d;
}
