"use strict";
// The data: a small object as JSON, and columns of numbers, seven bits a byte, in base64.
const data = JSON.parse(document.getElementById("data").textContent);
function column(name) {
  const text = atob(document.getElementById(name).textContent.trim()), out = [];
  let value = 0, scale = 1;
  for (let i = 0; i < text.length; i++) {
    const byte = text.charCodeAt(i);
    value += (byte & 127) * scale;
    if (byte & 128) scale *= 128; else { out.push(value); value = 0; scale = 1; }
  }
  return out;
}
function sums(list) { let sum = 0; return list.map(n => sum += n); }
// zigzag differences
function steps(list) { let at = 0; return list.map(n => at += n % 2 ? -(n + 1) / 2 : n / 2); }
const op = { id: steps(column("op-id")), kind: column("op-kind"), from: steps(column("op-from")), life: column("op-life"), parent: column("op-parent"), stack: column("op-stack"), runs: column("op-runs"), busy: column("op-busy") };
const span = { from: sums(column("sp-from")), long: column("sp-long"), thread: column("sp-thread"), op: column("sp-op"), how: column("sp-how"), record: steps(column("sp-batch")), index: column("sp-index") };
const bins = data.threads.map((_, i) => { const b = atob(document.getElementById("bins-" + i).textContent.trim()); const out = []; for (let k = 0; k + 1 < b.length; k += 2) for (let n = b.charCodeAt(k) + 1; n > 0; n--) out.push(b.charCodeAt(k + 1)); return out; });
const OPS = op.id.length, SPANS = span.from.length, END = data.end;
const byThread = data.threads.map(() => []), byOp = new Map(), children = new Map();
for (let i = 0; i < SPANS; i++) {
  byThread[span.thread[i]].push(i);
  const o = span.op[i] - 1;
  if (o >= 0) { const l = byOp.get(o); if (l) l.push(i); else byOp.set(o, [i]); }
}
for (let i = 0; i < OPS; i++) { const p = op.parent[i] - 1; if (p >= 0) { const l = children.get(p); if (l) l.push(i); else children.set(p, [i]); } }
const family = i => op.kind[i] & 1, state = i => data.states[(op.kind[i] >> 1) & 7], standing = i => (op.kind[i] >> 4) & 3, isCreated = i => (op.kind[i] >> 6) & 1, isOpen = i => (op.kind[i] >> 7) & 1;
const opEnd = i => isOpen(i) ? END : op.from[i] + op.life[i];
const frames = i => op.stack[i] ? data.stacks[op.stack[i] - 1].map(n => data.names[n]) : [];
function title(i) {
  const f = frames(i), own = f.filter(n => !/^(System|Microsoft)\.|^0x/.test(n));
  const name = own.length ? own[own.length - 1] : f.length ? f[f.length - 1] : family(i) ? "state machine" : "runtime-async";
  return name + " #" + op.id[i];
}
function time(ns) {
  const a = Math.abs(ns);
  return a >= 1e9 ? (ns / 1e9).toFixed(3) + " s" : a >= 1e6 ? (ns / 1e6).toFixed(3) + " ms" : a >= 1e3 ? (ns / 1e3).toFixed(3) + " µs" : Math.round(ns) + " ns";
}
// --- view
let view = { from: 0, to: END }, shown = null, chosen = null;
const ROW = 18, GUTTER = 210, $ = id => document.getElementById(id);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
let color = {};
function colors() { for (const n of ["fg", "dim", "bg", "line", "bar", "open", "wait", "mark", "tail", "lost"]) color[n] = css("--" + n); }
function canvas(id, height) {
  const c = $(id), ratio = devicePixelRatio || 1, width = c.clientWidth;
  if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) { c.width = Math.round(width * ratio); c.height = Math.round(height * ratio); c.style.height = height + "px"; }
  const g = c.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = "12px system-ui, sans-serif";
  g.textBaseline = "middle";
  return [g, width, height];
}
const x = (t, width) => GUTTER + (t - view.from) / (view.to - view.from) * (width - GUTTER);
const at = (px, width) => view.from + (px - GUTTER) / (width - GUTTER) * (view.to - view.from);
function grid(width) {
  const wanted = (view.to - view.from) / Math.max(2, (width - GUTTER) / 110), power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= wanted), out = [];
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) out.push(t);
  return out;
}
function backdrop(g, width, height) {
  const edge = t => Math.max(GUTTER, Math.min(width, x(t, width)));
  g.fillStyle = color.lost;
  for (const [from, to] of data.lost) g.fillRect(edge(from), 0, Math.max(1, edge(to) - edge(from)), height);
  const known = data.horizon ?? data.likely;
  if (known !== null) { g.fillStyle = color.tail; g.fillRect(edge(known), 0, width - edge(known), height); }
  g.strokeStyle = color.line; g.lineWidth = 1; g.globalAlpha = .5;
  for (const t of grid(width)) { const px = Math.round(x(t, width)) + .5; g.beginPath(); g.moveTo(px, 0); g.lineTo(px, height); g.stroke(); }
  g.globalAlpha = 1;
  if (known !== null && known >= view.from && known <= view.to) { g.strokeStyle = color.mark; g.lineWidth = 2; g.beginPath(); g.moveTo(x(known, width), 0); g.lineTo(x(known, width), height); g.stroke(); }
}
function label(g, text, y, strong) {
  g.save(); g.beginPath(); g.rect(0, y, GUTTER - 8, ROW); g.clip();
  g.fillStyle = strong ? color.open : color.fg; g.fillText(text, 12, y + ROW / 2); g.restore();
}
function drawAxis() {
  const [g, width, height] = canvas("axis", 26);
  backdrop(g, width, height);
  g.fillStyle = color.dim;
  let free = GUTTER;
  for (const t of grid(width)) { const text = time(t), px = x(t, width); if (px >= free) { g.fillText(text, px + 3, 9); free = px + g.measureText(text).width + 10; } }
  g.fillText(time(view.to - view.from) + " shown", 12, 9);
  const known = data.horizon ?? data.likely;
  if (known !== null && known >= view.from && known <= view.to) { g.fillStyle = color.mark; const text = data.horizon === null ? "likely horizon" : "horizon", px = x(known, width), w = g.measureText(text).width; g.fillText(text, Math.min(px + 4, width - w - 4), 19); }
}
// Bars thinner than a pixel are added up: how dark a pixel is says how much of it was busy.
function drawBars(g, width, y, list, left, right) {
  const cover = new Float32Array(Math.ceil(width) + 2);
  for (let k = left; k < right; k++) {
    const i = list[k], from = span.from[i], to = from + span.long[i];
    const a = Math.max(GUTTER, x(from, width)), b = Math.min(width, x(to, width));
    if (b < GUTTER || a > width) continue;
    if (b - a >= 1.5) { g.fillStyle = data.outcomes[span.how[i]] === "still running" ? color.open : color.bar; g.fillRect(a, y + 4, b - a, ROW - 8); if (i === chosen?.span) { g.strokeStyle = color.fg; g.strokeRect(a - 1, y + 3, b - a + 2, ROW - 6); } }
    else spread(cover, a, b);
  }
  paint(g, width, y, cover);
}
function spread(cover, a, b) {
  for (let p = Math.floor(a); p <= b; p++) cover[p] += Math.max(.02, Math.min(b, p + 1) - Math.max(a, p));
}
function paint(g, width, y, cover) {
  g.fillStyle = color.bar;
  for (let p = GUTTER; p < width; p++) if (cover[p] > 0) { g.globalAlpha = Math.min(1, .25 + .75 * cover[p]); g.fillRect(p, y + 4, 1, ROW - 8); }
  g.globalAlpha = 1;
}
function bounds(list) {
  // spans of a list are sorted by their beginnings; long ones before the view are caught by the longest
  let lo = 0, hi = list.length;
  const first = view.from - data.longest;
  while (lo < hi) { const m = (lo + hi) >> 1; if (span.from[list[m]] < first) lo = m + 1; else hi = m; }
  let right = lo, top = list.length;
  while (right < top) { const m = (right + top) >> 1; if (span.from[list[m]] <= view.to) right = m + 1; else top = m; }
  return [lo, right];
}
function drawThreads() {
  const height = Math.max(ROW, data.threads.length * ROW), [g, width] = canvas("threads", height);
  backdrop(g, width, height);
  data.threads.forEach((thread, row) => {
    const y = row * ROW;
    label(g, "thread " + thread, y);
    if (data.binned > 0) {
      const b = bins[row], per = END / b.length, cover = new Float32Array(Math.ceil(width) + 2);
      for (let k = Math.max(0, Math.floor(view.from / per)); k < b.length && k * per <= view.to; k++) if (b[k]) {
        const a = Math.max(GUTTER, x(k * per, width)), e = Math.min(width, x((k + 1) * per, width));
        for (let p = Math.floor(a); p < e; p++) cover[p] += b[k] / 255 * (Math.min(e, p + 1) - Math.max(a, p));
      }
      paint(g, width, y, cover);
    }
    const [left, right] = bounds(byThread[row]);
    drawBars(g, width, y, byThread[row], left, right);
  });
  g.fillStyle = color.mark;
  for (const m of data.markers) { const t = m[0]; if (t >= view.from && t <= view.to && m[1] >= 0) { const px = x(t, width), y = m[1] * ROW; g.beginPath(); g.moveTo(px, y + 5); g.lineTo(px - 3, y); g.lineTo(px + 3, y); g.fill(); } }
}
let order = [];
function filter() {
  const text = $("search").value.trim().toLowerCase(), only = $("only").value;
  order = [];
  for (let i = 0; i < OPS; i++) {
    if (only === "open" && !isOpen(i)) continue;
    if (only === "proved" && !(isOpen(i) && standing(i) === 0)) continue;
    if (text && !(title(i) + " " + state(i) + " " + frames(i).join(" ")).toLowerCase().includes(text)) continue;
    order.push(i);
  }
  $("found").textContent = (order.length === OPS ? "" : order.length.toLocaleString("en") + " of ") + OPS.toLocaleString("en") + (OPS === 1 ? " operation" : " operations");
  $("room").style.height = order.length * ROW * squeeze() + roomHeight() + "px";
  draw();
}
// browsers lay out no element of more than some 16 million pixels
const squeeze = () => Math.min(1, 12e6 / Math.max(1, order.length * ROW));
const roomHeight = () => Math.max(ROW * 4, innerHeight - 110);
function firstRow() {
  const top = $("rows").offsetTop;
  return Math.max(0, Math.floor(top / (ROW * squeeze())));
}
function drawRows() {
  const height = roomHeight(), [g, width] = canvas("rows", height), first = firstRow(), rows = Math.ceil(height / ROW);
  backdrop(g, width, height);
  for (let r = 0; r < rows && first + r < order.length; r++) {
    const i = order[first + r], y = r * ROW, a = Math.max(GUTTER, x(op.from[i], width)), b = Math.min(width, x(opEnd(i), width));
    if (i === chosen?.op) { g.fillStyle = color.wait; g.globalAlpha = .35; g.fillRect(0, y, width, ROW); g.globalAlpha = 1; }
    label(g, title(i), y, isOpen(i) && standing(i) === 0);
    if (b >= GUTTER && a <= width) { g.fillStyle = isOpen(i) ? (standing(i) === 2 ? color.mark : color.open) : color.wait; g.globalAlpha = isOpen(i) ? .6 : 1; g.fillRect(a, y + ROW / 2 - 1, Math.max(1, b - a), 2); g.globalAlpha = 1; }
    const list = byOp.get(i) || [], [left, right] = bounds(list);
    drawBars(g, width, y, list, left, right);
  }
  if (!order.length) { g.fillStyle = color.dim; g.fillText("no operation matches", GUTTER + 12, ROW); }
}
let asked = false;
function draw() { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; colors(); drawAxis(); drawThreads(); drawRows(); }); } }
// --- details
function text(tag, content, parent) { const e = document.createElement(tag); if (content !== undefined) e.textContent = content; if (parent) parent.append(e); return e; }
function row(dl, name, value) { text("dt", name, dl); const dd = text("dd", undefined, dl); if (value instanceof Node) dd.append(value); else dd.textContent = value; }
function link(i) { const a = text("a", title(i)); a.tabIndex = 0; a.onclick = () => choose({ op: i }, true); a.onkeydown = e => { if (e.key === "Enter") choose({ op: i }, true); }; return a; }
const sure = ["proved as of the horizon", "likely; nothing proves it", "not known: its last record lies behind the horizon"];
function choose(what, scroll) {
  chosen = what;
  const box = $("detail"); box.replaceChildren();
  if (!what) { text("p", "Click a bar, a row or a thread.", box).className = "dim"; draw(); return; }
  if (what.text) { text("h3", what.title, box); for (const line of what.text) text("p", line, box); }
  if (what.span !== undefined) {
    const i = what.span, dl = text("dl");
    text("h3", "Activation", box); box.append(dl);
    row(dl, "from", time(span.from[i])); row(dl, "to", data.outcomes[span.how[i]] === "still running" ? "not recorded" : time(span.from[i] + span.long[i]));
    row(dl, "lasted", time(span.long[i])); row(dl, "thread", String(data.threads[span.thread[i]])); row(dl, "outcome", data.outcomes[span.how[i]]);
    row(dl, "record", span.index[i] + " of batch 0x" + span.record[i].toString(16));
    if (span.op[i] > 0) { what.op = span.op[i] - 1; }
  }
  if (what.op !== undefined) {
    const i = what.op, dl = text("dl"), f = frames(i);
    text("h3", title(i), box); box.append(dl);
    row(dl, "kind", family(i) ? "state machine" : "runtime-async"); row(dl, "last seen", state(i)); if (isOpen(i)) row(dl, "that is", sure[standing(i)]);
    row(dl, isCreated(i) ? "created" : "first seen", time(op.from[i])); row(dl, "ended", isOpen(i) ? "not in the recording" : time(opEnd(i)));
    row(dl, "activations", op.runs[i].toLocaleString("en") + ", together " + time(op.busy[i]));
    const drawn = (byOp.get(i) || []).length; if (drawn < op.runs[i]) row(dl, "drawn", drawn + " of them; shorter ones are in the shade of the threads only");
    if (op.parent[i] > 0) row(dl, "created by", link(op.parent[i] - 1));
    const below = children.get(i) || [];
    if (below.length) { const all = text("span"); below.slice(0, 20).forEach((c, n) => { if (n) all.append(", "); all.append(link(c)); }); if (below.length > 20) all.append(" and " + (below.length - 20) + " more"); row(dl, "created", all); }
    if (f.length) { text("h3", "Frames, innermost first", box); const ol = text("ol", undefined, box); f.forEach(n => text("li", n, ol)); }
    if (scroll) { const k = order.indexOf(i); if (k >= 0) { const top = $("room").getBoundingClientRect().top + scrollY + k * ROW * squeeze() - 100; scrollTo({ top }); } }
  }
  draw();
}
function near(list, t) {
  let best, distance = (view.to - view.from) / 150;
  const [left, right] = bounds(list);
  for (let k = left; k < right; k++) { const i = list[k], d = Math.max(span.from[i] - t, t - span.from[i] - span.long[i], 0); if (d < distance || (d === 0 && distance === 0 && span.long[i] < span.long[best])) { best = i; distance = d; } }
  return best;
}
// --- hands
function zoom(factor, center) {
  let length = Math.max(100, Math.min(END, (view.to - view.from) * factor)), from = center - (center - view.from) * length / (view.to - view.from);
  from = Math.max(0, Math.min(END - length, from)); view = { from, to: from + length }; draw();
}
function move(by) { const length = view.to - view.from, from = Math.max(0, Math.min(END - length, view.from + by)); view = { from, to: from + length }; draw(); }
function hand(id, click) {
  const c = $(id); let drag = null;
  c.addEventListener("wheel", e => { if (!e.ctrlKey && !e.metaKey) return; e.preventDefault(); zoom(1.0015 ** e.deltaY, at(e.offsetX, c.clientWidth)); }, { passive: false });
  c.addEventListener("pointerdown", e => { drag = { x: e.clientX, moved: false }; c.setPointerCapture(e.pointerId); });
  c.addEventListener("pointermove", e => { if (!drag) return; const by = e.clientX - drag.x; if (Math.abs(by) > 2) drag.moved = true; if (drag.moved) { move(-by / (c.clientWidth - GUTTER) * (view.to - view.from)); drag.x = e.clientX; } });
  c.addEventListener("pointerup", e => { if (drag && !drag.moved) click(e.offsetX, e.offsetY, c.clientWidth); drag = null; });
  c.addEventListener("dblclick", e => zoom(.25, at(e.offsetX, c.clientWidth)));
}
hand("threads", (px, py, width) => {
  const r = Math.floor(py / ROW), t = at(px, width);
  if (r >= data.threads.length) return;
  const m = data.markers.find(m => m[1] === r && Math.abs(x(m[0], width) - px) < 5 && py - r * ROW < 8);
  if (m) return choose({ title: "Marker", text: [m[2], time(m[0])] });
  const s = px >= GUTTER ? near(byThread[r], t) : undefined;
  if (s !== undefined) return choose({ span: s });
  choose({ title: "thread " + data.threads[r], text: [byThread[r].length.toLocaleString("en") + " activations drawn one by one" + (data.binned ? "; shorter ones are in the shade" : "")] });
});
hand("rows", (px, py, width) => {
  const i = order[firstRow() + Math.floor(py / ROW)];
  if (i === undefined) return;
  const s = px >= GUTTER ? near(byOp.get(i) || [], at(px, width)) : undefined;
  choose(s === undefined ? { op: i } : { span: s, op: i });
});
hand("axis", () => {});
const middle = () => (view.from + view.to) / 2;
$("in").onclick = () => zoom(.5, middle()); $("out").onclick = () => zoom(2, middle()); $("all").onclick = () => { view = { from: 0, to: END }; draw(); };
$("left").onclick = () => move(-(view.to - view.from) / 4); $("right").onclick = () => move((view.to - view.from) / 4);
$("search").oninput = filter; $("only").onchange = filter;
addEventListener("keydown", e => {
  if (/INPUT|SELECT/.test(e.target.tagName)) return;
  if (e.key === "+") zoom(.5, middle()); else if (e.key === "-") zoom(2, middle()); else if (e.key === "ArrowLeft") move(-(view.to - view.from) / 8); else if (e.key === "ArrowRight") move((view.to - view.from) / 8); else if (e.key === "0") $("all").onclick(); else if (e.key === "/") { e.preventDefault(); $("search").focus(); }
});
addEventListener("scroll", draw, { passive: true });
addEventListener("resize", filter);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
filter(); choose(null);
