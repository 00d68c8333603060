"use strict";
// Draws what is too much to stand in the page as elements from the start. All text is set as text, never as markup.
const R = JSON.parse(document.getElementById("report").textContent);
const $ = (id) => document.getElementById(id);
const STEP = 100;

function el(tag, attributes, ...children) {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") out.className = value;
    else if (name.startsWith("on")) out.addEventListener(name.slice(2), value);
    else out.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== "") out.append(child);
  return out;
}
function svg(tag, attributes, ...children) {
  const out = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) out.setAttribute(name, value);
  out.append(...children);
  return out;
}
const number = (n) => n.toLocaleString("en-US");
const several = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
function duration(s) {
  if (s === undefined || s === null) return "";
  s = Math.max(0, s);
  if (s < 9.95) return `${s.toFixed(1)} s`;
  const w = Math.round(s);
  const pair = (a, x, b, y) => (b ? `${a} ${x} ${b} ${y}` : `${a} ${x}`);
  if (w < 60) return `${w} s`;
  if (w < 3600) return pair(Math.floor(w / 60), "min", w % 60, "s");
  if (w < 86400) return pair(Math.floor(w / 3600), "h", Math.floor((w % 3600) / 60), "min");
  return pair(Math.floor(w / 86400), "d", Math.floor((w % 86400) / 3600), "h");
}
const size = (n) => {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024 || unit === "GiB") return unit === "B" ? `${n} B` : `${n.toFixed(1)} ${unit}`;
    n /= 1024;
  }
};
const link = (id) => el("a", { href: `#${id}` }, id);
const short = (method) => method.replace(/<[^<>]*>/g, "<…>").split(".").slice(-2).join(".");
const rootText = (root) => (root && (root.text || root.kind !== "none") ? root.text || root.kind : "nothing waits for these");
const place = (f) =>
  f.await_index !== undefined ? `await ${f.await_index}${f.await_index_least ? " or later" : ""}`
    : f.il_offset !== undefined ? `await at IL 0x${f.il_offset.toString(16)}` : "";
const source = (f) => (f.file ? `${f.file}${f.line ? `:${f.line}` : ""}` : "");
// what does not wait for something else: its text is a sentence of its own
const RUNS = new Set(["task-running", "thread-blocked"]);
const chains = R.chains || [];
const byId = new Map(chains.map((c) => [c.id, c]));
for (const c of chains) c.words = [c.id, c.signature, c.leaf.kind, c.leaf.text, rootText(c.root), ...c.frames.map((f) => f.method)].join("\n").toLowerCase();
let wanted = "";
const hit = (text) => !wanted || text.includes(wanted);

// A list that grows on demand: rows are made when they are to be seen.
function lazy(host, rows, make, count) {
  let shown = 0;
  const more = el("button", { onclick: () => grow(STEP) });
  function grow(by) {
    const part = rows.slice(shown, shown + by);
    more.before(...part.map(make));
    shown += part.length;
    more.hidden = shown >= rows.length;
    more.textContent = `${number(rows.length - shown)} more: show ${Math.min(STEP, rows.length - shown)}`;
    if (count) count(shown, rows.length);
  }
  host.replaceChildren(more);
  grow(STEP);
  return { upTo(index) { if (index >= shown) grow(index - shown + 1); } };
}

// The icicle: from what chains are for, inwards to what they wait for; a search leaves only chains that match.
const trie = { label: "all chains", full: "all chains", kind: "root", count: 0, kids: new Map(), groups: [], up: null };
function buildTrie(hideIdle) {
  trie.count = 0; trie.kids.clear(); trie.groups = [];
  for (const c of chains) {
    if ((hideIdle && !wanted && c.verdict && c.verdict.state === "idle") || !hit(c.words)) continue;
    let at = trie;
    at.count += c.count; at.groups.push(c.id);
    const go = (key, kind, label, full) => {
      let kid = at.kids.get(key);
      if (!kid) at.kids.set(key, (kid = { label, full, kind, count: 0, kids: new Map(), groups: [], up: at }));
      kid.count += c.count; kid.groups.push(c.id); at = kid;
    };
    const root = rootText(c.root);
    go(`r${c.root ? c.root.kind : ""}${root}`, "root", root, c.root && c.root.kind !== "none" ? `${c.root.kind}: ${root}` : root);
    for (let i = c.frames.length - 1; i >= 0; i--) {
      const f = c.frames[i];
      const note = [place(f), f.awaits && `awaits ${f.awaits}`, source(f), f.repeat > 1 && `×${number(f.repeat)}`].filter(Boolean).join(", ");
      go(`f${f.method} ${note}`, f.is_framework ? "fw" : "own", short(f.method) + (f.repeat > 1 ? ` ×${number(f.repeat)}` : ""), note ? `${f.method} (${note})` : f.method);
    }
    go(`l${c.leaf.kind}${c.leaf.text}`, "leaf", c.leaf.text || c.leaf.kind, `${c.leaf.kind}: ${c.leaf.text}`);
  }
}
const ROW = 22, LEAST = 4, DEEP = 90;
let zoomed = trie, cells = new Map();
function drawIcicle() {
  const host = $("icicle");
  const width = host.clientWidth || 1100;
  const made = [];
  cells = new Map();
  let lowest = 0;
  const found = new Map();
  const matches = (n) => {
    if (!found.has(n)) found.set(n, n.full.toLowerCase().includes(wanted));
    return found.get(n);
  };
  const put = (node, depth, left, wide) => {
    const cell = el("button", {
      class: `cell ${node.kind}${wanted && matches(node) ? " hit" : ""}`,
      title: `${node.full}\n${several(node.count, "chain")}`, tabindex: "-1",
      "aria-label": `${node.full}, ${several(node.count, "chain")}`,
    }, wide > 24 ? node.label : "");
    cell.style.left = `${left}px`; cell.style.width = `${Math.max(1, wide - 1)}px`; cell.style.top = `${depth * ROW}px`;
    cell.addEventListener("click", () => zoom(node));
    cell.addEventListener("focus", () => tell(node));
    cell.addEventListener("mouseenter", () => tell(node));
    cells.set(node, cell); made.push(cell); lowest = Math.max(lowest, depth);
  };
  const above = [];
  for (let n = zoomed; n; n = n.up) above.unshift(n);
  const skipped = Math.max(0, above.length - 12);
  above.slice(skipped).forEach((n, depth) => put(n, depth, 0, width));
  const first = above.length - skipped;
  const open = [[zoomed, first, 0]];
  const scale = width / Math.max(1, zoomed.count);
  while (open.length) {
    const [node, depth, left] = open.pop();
    if (depth - first > DEEP) continue;
    let x = left, rest = 0, narrow = 0;
    for (const kid of [...node.kids.values()].sort((a, b) => b.count - a.count)) {
      const wide = kid.count * scale;
      if (wide < LEAST) { rest += wide; narrow++; continue; }
      put(kid, depth, x, wide);
      open.push([kid, depth + 1, x]);
      x += wide;
    }
    if (rest >= 1) {
      const cell = el("span", { class: "cell rest", title: `${number(narrow)} too narrow to draw: zoom in, or search` }, rest > 90 ? `${number(narrow)} narrow ones` : "");
      cell.style.left = `${x}px`; cell.style.width = `${rest}px`; cell.style.top = `${depth * ROW}px`;
      made.push(cell); lowest = Math.max(lowest, depth);
    }
  }
  host.style.height = `${(lowest + 1) * ROW}px`;
  host.replaceChildren(...made);
  const start = cells.get(zoomed);
  if (start) start.tabIndex = 0;
}
function tell(node) {
  const groups = node.groups.slice(0, 12).flatMap((g) => [" ", link(g)]);
  $("detail").replaceChildren(el("span", { class: "count" }, several(node.count, "chain")), "  ", el("code", {}, node.full), ...groups,
    node.groups.length > 12 ? ` and ${number(node.groups.length - 12)} more groups` : "");
}
function zoom(node) {
  zoomed = node.kids.size === 0 && node.up ? node.up : node;
  drawIcicle(); tell(node);
  const cell = cells.get(node) || cells.get(zoomed);
  if (cell) cell.focus({ preventScroll: true });
}
function moveFrom(node, key) {
  const kids = (n) => [...n.kids.values()].sort((a, b) => b.count - a.count).filter((k) => cells.has(k));
  if (key === "ArrowDown") return kids(node)[0];
  if (key === "ArrowUp") return node.up;
  const row = node.up ? kids(node.up) : [];
  return row[row.indexOf(node) + (key === "ArrowRight" ? 1 : -1)];
}
$("icicle").addEventListener("keydown", (event) => {
  if (event.key === "Escape") { zoom(zoomed.up || trie); event.preventDefault(); return; }
  if (!event.key.startsWith("Arrow")) return;
  for (const [node, cell] of cells) {
    if (cell !== document.activeElement) continue;
    const next = moveFrom(node, event.key);
    if (next && cells.has(next)) cells.get(next).focus();
    event.preventDefault();
    return;
  }
});

// Chains
function frameRow(f) {
  const notes = [place(f), f.repeat > 1 && `×${number(f.repeat)}`, f.awaits && `awaits ${f.awaits}`, f.is_async_void && "async void",
    f.delegate && `delegate ${f.delegate}`, f.retained_bytes !== undefined && `keeps ${size(f.retained_bytes)}`].filter(Boolean).join(", ");
  const where = source(f);
  const row = el("li", { class: f.is_framework ? "fw" : "own", title: [f.kind, f.type, f.address, f.evidence].filter(Boolean).join("\n") },
    el("code", {}, f.method), notes ? el("span", { class: "dim" }, `  ${notes}`) : "", where ? el("span", { class: "dim" }, `  ${where}`) : "");
  if (f.locals && f.locals.length) {
    row.append(el("details", { class: "more" }, el("summary", {}, several(f.locals.length, "variable")), el("dl", { class: "locals" },
      f.locals.flatMap((v) => [el("dt", {}, el("code", {}, v.name)), el("dd", {}, [v.value, v.type, v.address, v.bytes !== undefined && size(v.bytes),
        v.retained_bytes !== undefined && `keeps ${size(v.retained_bytes)}`].filter(Boolean).join("  "))]))));
  }
  return row;
}
function groupBody(c) {
  const out = [];
  if (c.verdict) out.push(el("p", { class: "why" }, el("span", { class: `badge ${c.verdict.state}` }, c.verdict.state), ` ${c.verdict.why}`));
  if (c.waiting_seconds) {
    const w = c.waiting_seconds;
    const range = duration(w.min) === duration(w.max) ? duration(w.max) : `${duration(w.min)} to ${duration(w.max)}, half of them at most ${duration(w.median)}`;
    out.push(el("p", { class: "why" }, `waiting for ${range} `, el("span", { class: "dim" }, w.how)));
  }
  out.push(el("p", { class: "dim" }, "innermost first"), el("ol", { class: "frames" }, c.frames.map(frameRow)));
  for (const who of c.leaf.completers || []) {
    const where = who.chain ? [" ", link(who.chain)] : who.thread ? [" ", el("a", { href: `#T${who.thread}` }, `thread ${who.thread}`)] : [];
    out.push(el("p", { class: "why" }, el("span", { class: `badge ${who.confidence}` }, `completed by, ${who.confidence}`), ` ${who.text}`, ...where,
      el("span", { class: "dim" }, `  ${[who.path, who.evidence].filter(Boolean).join("; ")}`)));
  }
  if (c.leaf.evidence) out.push(el("p", { class: "dim" }, `${c.leaf.confidence ? `${c.leaf.confidence}: ` : ""}${c.leaf.evidence}`));
  const members = c.members || [];
  const list = el("ul", { class: "facts" });
  lazy(list, members, (m) => el("li", { id: m.id }, link(m.id), m.waiting_seconds !== undefined ? ` ${duration(m.waiting_seconds)}` : "",
    m.root ? `  ${m.root}` : "", m.leaf ? `  ${m.leaf}` : "", m.retained_bytes !== undefined ? `  keeps ${size(m.retained_bytes)}` : "", " ", el("code", { class: "dim" }, m.boxes.slice(0, 40).join(" "))));
  const left = c.members_left_out ? `, ${number(c.members_left_out)} more are not in this report (--all)` : "";
  out.push(el("details", { class: "more" }, el("summary", {}, `${several(members.length, "chain")} by address${left}`), list));
  out.push(el("p", { class: "dim" }, `signature ${c.signature}${c.retained_bytes !== undefined ? `, keeps ${size(c.retained_bytes)}` : ""}`));
  return out;
}
function groupCard(c) {
  const own = c.frames.find((f) => !f.is_framework) || c.frames[0];
  const age = c.waiting_seconds ? duration(c.waiting_seconds.max) : "";
  const state = c.verdict ? c.verdict.state : "";
  const details = el("details", {}, el("summary", {}, link(c.id), el("span", { class: "count" }, `×${number(c.count)}`),
    el("span", { class: "what" }, own ? el("code", {}, own.method) : "", RUNS.has(c.leaf.kind) ? ": " : " waits for ", el("b", {}, c.leaf.kind), ` ${c.leaf.text} `,
      state ? el("span", { class: `badge ${state}` }, state) : "", " ", el("span", { class: "dim" }, [rootText(c.root), age].filter(Boolean).join(", ")))));
  details.addEventListener("toggle", () => { if (details.open && details.childElementCount === 1) details.append(...groupBody(c)); });
  return el("div", { class: "card group", id: c.id }, details);
}
let chainRows = [], chainList = null;
function drawChains() {
  chainRows = chains.filter((c) => hit(c.words));
  chainList = lazy($("chain-list"), chainRows, groupCard);
  $("chain-count").textContent = wanted ? `${number(chainRows.length)} of ${several(chains.length, "group")}` : several(chains.length, "group");
}

// Requests
const requests = (R.requests || []).map((r) => {
  const chain = r.chain && byId.get(r.chain);
  const row = { r, id: r.id || "", method: r.method, path: r.route || r.path, age: r.age_seconds, chain: r.chain || "",
    waits: chain ? `${chain.leaf.kind}: ${chain.leaf.text}` : (r.details && r.details.state) || "" };
  row.words = Object.values(row).filter((v) => typeof v === "string").concat(r.path, r.trace_id || "").join("\n").toLowerCase();
  return row;
});
const COLUMNS = [["id", "id"], ["method", "method"], ["path", "path or route"], ["age", "age"], ["waits", "waits for"], ["chain", "chain"]];
let sorted = "age", falling = true;
function drawRequests() {
  if (!$("request-rows")) return;
  const local = $("request-filter").value.toLowerCase();
  const rows = requests.filter((q) => hit(q.words) && q.words.includes(local));
  const value = (q) => { const v = q[sorted]; return v === undefined ? -1 : sorted === "id" || sorted === "chain" ? Number(String(v).slice(1)) : v; };
  rows.sort((a, b) => { const [x, y] = [value(a), value(b)]; return (x < y ? -1 : x > y ? 1 : 0) * (falling ? -1 : 1); });
  $("request-head").replaceChildren(el("tr", {}, COLUMNS.map(([key, text]) => el("th", {
    scope: "col", class: key === "age" ? "num" : "", "aria-sort": key === sorted ? (falling ? "descending" : "ascending") : "none",
  }, el("button", { onclick: () => { falling = key === sorted ? !falling : key === "age"; sorted = key; drawRequests(); } }, text)))));
  const body = $("request-rows");
  const make = (q) => el("tr", { id: q.id }, el("td", {}, q.id ? link(q.id) : ""), el("td", {}, q.method),
    el("td", { title: [q.r.path, q.r.trace_id && `trace ${q.r.trace_id}`, q.r.connection && `connection ${q.r.connection}`].filter(Boolean).join("\n") }, el("code", {}, q.path)),
    el("td", { class: "num", title: (q.r.details && q.r.details.age_how) || "" }, duration(q.age)), el("td", {}, q.waits), el("td", {}, q.chain ? link(q.chain) : ""));
  let shown = Math.min(rows.length, STEP);
  const fill = () => {
    body.replaceChildren(...rows.slice(0, shown).map(make));
    $("request-more").hidden = shown >= rows.length;
    $("request-more").textContent = `${number(rows.length - shown)} more: show all`;
  };
  $("request-more").onclick = () => { shown = rows.length; fill(); };
  drawRequests.all = () => { shown = rows.length; fill(); };
  fill();
  $("request-count").textContent = rows.length === requests.length ? several(rows.length, "request") : `${number(rows.length)} of ${several(requests.length, "request")}`;
}

// Threads: those with equal stacks stand together
const stacks = (() => {
  const known = new Map();
  for (const t of R.threads || []) {
    const key = [t.state, t.waits_on ? t.waits_on.text : "", t.chain || "", ...t.frames.map((f) => f.method)].join("\n");
    if (!known.has(key)) known.set(key, { threads: [], words: `${key}\n${t.name || ""}`.toLowerCase() });
    const stack = known.get(key);
    stack.threads.push(t); stack.words += `\n${t.os_id} ${(t.name || "").toLowerCase()}`;
  }
  const weight = (s) => (s.threads[0].waits_on ? 2e6 : s.threads[0].runs ? 1e6 : 0) + s.threads.length;
  return [...known.values()].sort((a, b) => weight(b) - weight(a));
})();
function stackBody(stack) {
  const t = stack.threads[0];
  const out = [el("ol", { class: "frames" }, t.frames.map((f) => el("li", { class: f.is_framework || f.native ? "fw" : "own", title: [f.module, f.address, f.evidence].filter(Boolean).join("\n") },
    el("code", {}, f.method), f.standing && f.standing !== "exact" ? el("span", { class: "badge possible" }, f.standing) : "", source(f) ? el("span", { class: "dim" }, `  ${source(f)}`) : "")))];
  if (!t.frames.length) out.unshift(el("p", { class: "dim" }, "no managed frame was read"));
  const each = stack.threads.filter((x) => (x.holds && x.holds.length) || x.request);
  for (const x of each) out.push(el("p", { class: "why" }, `thread ${x.os_id}`, x.request ? ` serves ${x.request}` : "", ...(x.holds || []).map((h) => `, holds ${h.text}`)));
  return out;
}
function stackCard(stack) {
  const t = stack.threads[0];
  const names = new Map();
  for (const x of stack.threads) names.set(x.name || "unnamed", (names.get(x.name || "unnamed") || 0) + 1);
  const who = [...names].map(([name, n]) => (n > 1 ? `${number(n)} × ${name}` : name)).join(", ");
  const what = t.waits_on ? ["waits for ", t.waits_on.text] : t.runs ? [t.runs] : [t.state];
  const details = el("details", {}, el("summary", {}, el("span", { class: "count" }, `×${number(stack.threads.length)}`), el("span", { class: "badge" }, t.state),
    el("span", { class: "what" }, el("b", {}, who), " ", ...what, t.chain ? [" ", link(t.chain)] : "")));
  details.addEventListener("toggle", () => { if (details.open && details.childElementCount === 1) details.append(...stackBody(stack)); });
  const ids = el("div", { class: "dim" });
  for (const x of stack.threads) ids.append(el("a", { href: `#T${x.os_id}`, id: `T${x.os_id}` }, `T${x.os_id}`), " ");
  return el("div", { class: "card stack" }, details, ids);
}
let stackRows = [], stackList = null;
function drawThreads() {
  stackRows = stacks.filter((s) => hit(s.words));
  stackList = lazy($("thread-list"), stackRows, stackCard);
  $("thread-count").textContent = `${several((R.threads || []).length, "thread")}, ${several(stacks.length, "stack")}`;
}

// Ages on a logarithmic axis
function drawAges() {
  const host = $("ages");
  if (!host) return;
  const rows = chains.filter((c) => c.waiting_seconds && hit(c.words)).sort((a, b) => b.waiting_seconds.max - a.waiting_seconds.max).slice(0, 40);
  const aged = requests.filter((q) => q.age !== undefined && hit(q.words));
  const all = rows.flatMap((c) => [c.waiting_seconds.min, c.waiting_seconds.max]).concat(aged.map((q) => q.age));
  if (!all.length) { host.replaceChildren(el("p", { class: "dim" }, "Nothing in the dump tells since when these wait.")); return; }
  const left = 300, width = Math.max(760, host.clientWidth || 1100), room = width - left - 30;
  const low = Math.floor(Math.log10(Math.max(0.01, all.reduce((a, b) => Math.min(a, b))))) - 0.05;
  const high = Math.ceil(Math.log10(Math.max(0.1, all.reduce((a, b) => Math.max(a, b))))) + 0.05;
  const x = (s) => left + ((Math.log10(Math.max(0.01, s)) - low) / Math.max(0.2, high - low)) * room;
  const height = 34 + (rows.length + (aged.length ? 1 : 0)) * 22;
  const out = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "how long chains and requests have waited" });
  const text = (at, y, words, more) => { const t = svg("text", { x: at, y, ...more }); t.textContent = words; return t; };
  for (const [s, label] of [[0.01, "10 ms"], [0.1, "0.1 s"], [1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [36000, "10 h"], [86400, "1 d"], [864000, "10 d"]]) {
    if (Math.log10(s) < low || Math.log10(s) > high) continue;
    out.append(svg("line", { class: "axis", x1: x(s), x2: x(s), y1: 18, y2: height }), text(x(s), 12, label, { class: "tick", "text-anchor": "middle" }));
  }
  let y = 34;
  const title = (words) => { const t = svg("title", {}); t.textContent = words; return t; };
  if (aged.length) {
    out.append(text(0, y + 4, "requests"));
    for (const q of aged.slice(0, 2000)) out.append(svg("circle", { class: "dot request", cx: x(q.age), cy: y, r: 4 }, title(`${q.method} ${q.path}, ${duration(q.age)}\n${(q.r.details && q.r.details.age_how) || ""}`)));
    y += 22;
  }
  for (const c of rows) {
    const own = c.frames.find((f) => !f.is_framework) || c.frames[0];
    const name = `${c.id} ×${number(c.count)} ${own ? short(own.method) : c.leaf.text}`;
    const at = svg("a", { href: `#${c.id}` }, text(0, y + 4, name.length > 44 ? `${name.slice(0, 43)}…` : name, {}));
    const w = c.waiting_seconds;
    at.append(svg("line", { class: "span", x1: x(w.min), x2: x(w.max), y1: y, y2: y }), svg("circle", { class: "dot", cx: x(w.median), cy: y, r: 5 }),
      title(`${duration(w.min)} to ${duration(w.max)}, median ${duration(w.median)}\n${w.how}`));
    out.append(at);
    y += 22;
  }
  host.replaceChildren(out);
}

// Links and search
function reveal() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (!id) return;
  const group = id.match(/^C\d+/);
  if (group && byId.has(group[0])) {
    if (!chainRows.some((c) => c.id === group[0])) search("");
    chainList.upTo(chainRows.findIndex((c) => c.id === group[0]));
    const details = $(group[0]).querySelector("details");
    details.open = true;
    if (details.childElementCount === 1) details.append(...groupBody(byId.get(group[0])));
    const members = byId.get(group[0]).members || [];
    if (id !== group[0] && members.some((m) => m.id === id)) {
      details.lastElementChild.previousElementSibling.open = true;
      const more = () => details.querySelector("ul.facts > button:not([hidden])");
      while (!$(id) && more()) more().click();
    }
  }
  if (/^T\d+$/.test(id) && !$(id)) {
    if (!stackRows.some((s) => s.threads.some((t) => `T${t.os_id}` === id))) search("");
    stackList.upTo(stackRows.findIndex((s) => s.threads.some((t) => `T${t.os_id}` === id)));
  }
  if (/^R\d+$/.test(id) && !$(id) && drawRequests.all) { search(""); drawRequests.all(); }
  const target = $(id);
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  document.querySelectorAll(".target").forEach((e) => e.classList.remove("target"));
  target.classList.add("target");
  target.scrollIntoView({ block: "start" });
}
function search(text) {
  if ($("search").value.toLowerCase() !== text) $("search").value = text;
  wanted = text;
  buildTrie($("idle").checked); zoomed = trie;
  drawChains(); drawThreads(); drawRequests(); drawAges(); drawIcicle();
}
let timer = 0;
$("search").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => search($("search").value.trim().toLowerCase()), 120); });
if ($("request-filter")) $("request-filter").addEventListener("input", drawRequests);
$("idle").addEventListener("change", () => { buildTrie($("idle").checked); zoomed = trie; drawIcicle(); });
$("whole").addEventListener("click", () => zoom(trie));
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { $("search").focus(); event.preventDefault(); }
});
addEventListener("hashchange", reveal);
let wide = 0;
addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; drawIcicle(); drawAges(); } });
addEventListener("beforeprint", () => document.querySelectorAll("section.findings details").forEach((d) => { d.open = true; }));
$("idle").checked = chains.some((c) => c.verdict && c.verdict.state === "idle") && chains.some((c) => !c.verdict || c.verdict.state !== "idle");
search("");
reveal();
document.documentElement.dataset.ready = "1";
