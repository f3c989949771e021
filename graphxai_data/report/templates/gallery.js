// The gallery of a report: filters graphs, shows them, and the values of their nodes.

const AT_ONCE = 12;

// ---- Cards --------------------------------------------------------------------------------------

const html = (name, attributes = {}, ...children) => {
  const element = Object.assign(document.createElement(name), attributes);
  element.append(...children);
  return element;
};

const selected = () => Number(byId("explainer")?.value ?? -1);

function pair(graph) {
  const scores = selected() < 0 ? null : graph.scores(selected());
  const truth = truthWords(graph);
  const figures = [html("figure", {}, picture(graph, null, truth), html("figcaption", {}, truth))];
  if (meta.explainers.length) {
    const what = scores ? picture(graph, scores, "Explanation")
      : html("p", { className: "none" }, `This graph is not explained here. ${meta.explainers[selected()].unexplained}`);
    figures.push(html("figure", {}, what, html("figcaption", {}, "Explanation")));
  }
  return html("div", { className: figures.length > 1 ? "pair" : "single" }, ...figures);
}

function verdict(place) {
  const e = selected();
  const words = [];
  const model = e < 0 ? null : meta.explainers[e].model;
  const predicted = model === null ? NaN : index[`predicted_${model}`][place];
  if (meta.numbers && !Number.isNaN(predicted)) {
    words.push(`predicted ${number(predicted)}, label ${number(index.y[place])}`);
  } else if (predicted >= 0) {
    const right = predicted === index.y[place];
    words.push(`predicted ${className(predicted)}: ${right ? "correct" : "wrong"}`);
  }
  const jaccard = e < 0 || !index[`jaccard_${e}`] ? NaN : index[`jaccard_${e}`][place];
  if (!Number.isNaN(jaccard)) words.push(`Jaccard@k ${jaccard.toFixed(2)}`);
  return words.join(" · ");
}

const heading = (graph) => {
  const kind = graph.nodeY ? "" : ` · ${meta.numbers ? "label " : ""}${className(graph.y)}`;
  return `Graph ${graph.id}${kind} · ${meta.splits[graph.split]}`;
};

function card(graph) {
  const details = html("button", { type: "button", className: "details" }, "Details");
  details.setAttribute("aria-label", `Details of graph ${graph.id}`);
  details.addEventListener("click", () => open(graph.place));
  const element = html("article", { className: "card" },
    html("h3", { tabIndex: -1 }, heading(graph)), pair(graph),
    html("p", { className: "verdict" }, verdict(graph.place)), details);
  element.dataset.id = graph.id;
  return element;
}

// ---- Finding graphs -----------------------------------------------------------------------------

let index = null;
let matching = [];
let shown = 0;
let turn = 0;

function filtered() {
  const numberIn = (id) => { const v = byId(id)?.value ?? ""; return v === "" ? null : Number(v); };
  const [y, split] = [numberIn("class"), numberIn("split")];
  const [low, high] = [numberIn("jaccard-low"), numberIn("jaccard-high")];
  const e = selected();
  const model = e < 0 ? null : meta.explainers[e].model;
  const predicted = model === null ? null : index[`predicted_${model}`];
  const outcome = predicted ? byId("outcome")?.value ?? "" : "";
  const jaccard = e < 0 ? null : index[`jaccard_${e}`];
  const places = [];
  for (let i = 0; i < index.graph_id.length; i += 1) {
    if (y !== null && index.y[i] !== y) continue;
    if (split !== null && index.split[i] !== split) continue;
    if (outcome && (predicted[i] < 0 || (predicted[i] === index.y[i]) !== (outcome === "correct"))) continue;
    if ((low !== null && low > 0) || (high !== null && high < 1)) {
      if (!jaccard || !(jaccard[i] >= (low ?? 0) - 1e-6 && jaccard[i] <= (high ?? 1) + 1e-6)) continue;
    }
    places.push(i);
  }
  return places;
}

async function more() {
  const now = turn;
  const next = matching.slice(shown, shown + AT_ONCE);
  shown += next.length;
  const cards = (await Promise.all(next.map(graphAt))).map(card);
  if (now !== turn) return; // the filters have changed meanwhile
  byId("cards").append(...cards);
  byId("cards").dataset.turn = turn;
  byId("more").hidden = shown >= matching.length;
  byId("found").textContent =
    `${matching.length.toLocaleString("en")} of ${meta.graphs.toLocaleString("en")} graphs match; ${shown} shown.`;
}

let settings = "";

// One change of a filter gives two kinds of events, in some browsers only one of them.
async function changed() {
  const now = JSON.stringify([...byId("filters").elements].map((element) => element.value));
  if (now === settings) return;
  settings = now;
  await refresh();
}

async function refresh() {
  turn += 1;
  matching = filtered();
  shown = 0;
  byId("cards").replaceChildren();
  const e = selected();
  if (byId("what")) byId("what").textContent = e < 0 ? "" : meta.explainers[e].what;
  // Explainers without a model have no predictions.
  if (byId("outcome")) byId("outcome").disabled = e >= 0 && meta.explainers[e].model === null;
  await more();
}

// ---- One graph, large ---------------------------------------------------------------------------

async function open(place) {
  const graph = await graphAt(place);
  const scores = selected() < 0 ? null : graph.scores(selected());
  const names = ["node", ...meta.values.map((value) => value.name)];
  if (graph.nodeY) names.push("class");
  if (graph.weight) names.push("weight");
  if (graph.mask && !isSigned(graph)) names.push(graph.bits ? "alternatives" : "rationale");
  if (scores) names.push("contribution");
  const order = Array.from({ length: graph.nodes }, (_, v) => v);
  if (scores) order.sort((a, b) => scores.relative[b] - scores.relative[a] || a - b);
  const rows = order.map((v) => {
    const cells = [v, ...meta.values.map((_, k) => valueOf(graph, v, k))];
    if (graph.nodeY) cells.push(className(graph.nodeY[v]));
    if (graph.weight) cells.push(number(graph.weight[v]));
    if (graph.mask && !isSigned(graph)) cells.push(rationaleWords(graph, v));
    if (scores) cells.push(number(scores.relative[v] * scores.scale));
    return html("tr", {}, ...cells.map((cell) => html("td", {}, String(cell))));
  });
  const table = html("table", {}, html("caption", {}, "All nodes"),
    html("thead", {}, html("tr", {}, ...names.map((name) => html("th", { scope: "col" }, name)))),
    html("tbody", {}, ...rows));
  byId("one").replaceChildren(
    html("h2", {}, heading(graph)), pair(graph), html("p", { className: "verdict" }, verdict(place)), table);
  if (!byId("dialog").open) byId("dialog").showModal();
}

async function openById(text) {
  const place = /^\d+$/.test(text) ? index.graph_id.indexOf(Number(text)) : -1;
  byId("id-problem").textContent = place >= 0 ? ""
    : `No graph ${text} on this page; it holds ${meta.graphs_words}.`;
  if (place >= 0) await open(place);
}

// ---- Hovering, focusing, copying ----------------------------------------------------------------

function showTip(node) {
  const tip = byId("tip");
  tip.hidden = !node;
  if (!node) return;
  tip.textContent = node.getAttribute("aria-label");
  const box = node.getBoundingClientRect();
  const inDialog = byId("dialog").open && byId("dialog").contains(node);
  (inDialog ? byId("dialog") : document.body).append(tip); // a modal dialog hides everything else
  tip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - tip.offsetWidth - 8))}px`;
  const above = box.top - tip.offsetHeight - 6;
  tip.style.top = `${above > 4 ? above : box.bottom + 6}px`;
}

const nodeOf = (event) => event.target instanceof Element ? event.target.closest(".node") : null;

function step(event) {
  const svg = event.target.closest?.("svg.graph");
  const go = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
  if (!svg || go === undefined) return;
  event.preventDefault();
  const nodes = [...svg.querySelectorAll(".node")];
  const at = nodes.indexOf(document.activeElement);
  const next = at < 0 ? (go > 0 ? 0 : nodes.length - 1) : Math.min(nodes.length - 1, Math.max(0, at + go));
  nodes[next].focus();
}

async function copy(button) {
  const text = button.dataset.copy;
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // the browser may forbid this for local files; copying a selection works
    const area = html("textarea", { value: text });
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  button.textContent = done ? "Copied" : "Press Ctrl+C";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

addEventListener("beforeprint", () => { // so that everything is printed
  for (const details of document.querySelectorAll("details")) details.open = true;
});
document.addEventListener("mouseover", (event) => showTip(nodeOf(event)));
document.addEventListener("focusin", (event) => showTip(nodeOf(event)));
document.addEventListener("scroll", () => {
  if (!byId("tip").hidden) showTip(nodeOf({ target: document.activeElement }));
}, { passive: true });
document.addEventListener("keydown", step);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") showTip(null); });
for (const button of document.querySelectorAll("button.copy")) button.addEventListener("click", () => copy(button));

async function begin() {
  index = await unpack(byId("index"));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  for (const kind of ["input", "change"]) byId("filters").addEventListener(kind, changed);
  byId("filters").addEventListener("reset", () => setTimeout(changed));
  byId("more").addEventListener("click", async () => {
    const before = byId("cards").children.length;
    await more();
    byId("cards").children[before]?.querySelector("h3").focus(); // the button may be gone
  });
  byId("by-id").addEventListener("submit", (event) => { event.preventDefault(); openById(byId("id").value.trim()); });
  byId("close").addEventListener("click", () => byId("dialog").close());
  byId("dialog").addEventListener("close", () => showTip(null));
  await changed();
  byId("gallery").removeAttribute("aria-busy");
  addEventListener("hashchange", openFromAddress);
  await openFromAddress();
}

// The address may name a graph, as in report.html#graph-12.
async function openFromAddress() {
  const match = /^#graph-(\d+)$/.exec(location.hash);
  if (match) await openById(match[1]);
}

begin().catch((error) => {
  byId("found").textContent = `The gallery cannot be shown: ${error.message}. It needs a browser from 2023 or later.`;
  throw error;
});
