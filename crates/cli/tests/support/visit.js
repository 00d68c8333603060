const told = [];
const ensure = (is, what) => { if (!is) told.push("FAILED " + what); };
addEventListener("securitypolicyviolation", (e) => told.push("FAILED blocked " + e.violatedDirective + " " + e.blockedURI));
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const go = async (id) => { location.hash = id; await sleep(50); };
(async () => {
  ensure(document.documentElement.dataset.ready === "1", "the script ran to its end");
  const opened = performance.now();
  const groups = document.querySelectorAll(".group").length;
  ensure(groups > 0, "groups are listed");
  ensure(document.querySelectorAll("#waits svg g").length > 1, "the wait-for graph has nodes");
  ensure(document.querySelectorAll("#icicle .cell").length > 3, "the icicle has cells");
  await go("C1");
  const first = document.getElementById("C1").querySelector("details");
  ensure(first.open && first.querySelectorAll("ol.frames > li").length > 0, "a link opens its group");
  await go("C1.1");
  ensure(document.getElementById("C1.1")?.closest("details").open, "a link opens its chain");
  for (const link of [...document.querySelectorAll("a[href^='#']")].slice(0, 120)) {
    const id = decodeURIComponent(link.getAttribute("href").slice(1));
    await go(id);
    ensure(document.getElementById(id), "the link to " + id + " leads somewhere");
  }
  const before = document.querySelectorAll("#icicle .cell").length;
  const cell = [...document.querySelectorAll("#icicle .cell.fw, #icicle .cell.own")][2];
  cell.click();
  ensure(document.querySelectorAll("#icicle .cell").length <= before, "a click zooms in");
  ensure(document.activeElement.classList.contains("cell"), "the focus stays in the icicle");
  const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  press("ArrowDown");
  ensure(document.activeElement.classList.contains("cell"), "arrows move");
  for (let i = 0; i < 40; i++) press("Escape");
  ensure(document.querySelectorAll("#icicle .cell").length === before, "Escape zooms out");
  const box = document.getElementById("search");
  const look = async (text) => { box.value = text; box.dispatchEvent(new Event("input")); await sleep(200); };
  await look("no such method anywhere");
  ensure(document.querySelectorAll(".group").length === 0, "a search leaves out what does not match");
  const word = first.querySelector("ol.frames code").textContent;
  await look(word);
  ensure(document.querySelectorAll(".group").length > 0, "a search finds a method");
  ensure(document.querySelectorAll("#icicle .hit").length > 0, "the icicle marks what is found");
  await go("C1");
  await look("");
  ensure(document.querySelectorAll(".group").length === groups, "an empty search shows all");
  const head = document.querySelector("#request-head button");
  if (head) {
    const rows = () => [...document.querySelectorAll("#request-rows tr")].map((r) => r.id);
    head.click(); const up = rows().join();
    document.querySelector("#request-head button").click();
    ensure(rows().length < 2 || rows().join() !== up, "a click on a heading sorts");
    const filter = document.getElementById("request-filter");
    filter.value = "no such request"; filter.dispatchEvent(new Event("input"));
    ensure(rows().length === 0, "requests are filtered");
  }
  document.querySelectorAll(".stack details, .group details").forEach((d) => { d.open = true; });
  await sleep(50);
  ensure(performance.getEntriesByType("resource").length === 0, "nothing is fetched");
  told.push("opened after " + Math.round(opened));
})().catch((e) => told.push("FAILED " + e)).finally(() => {
  const out = document.createElement("pre");
  out.id = "told"; out.textContent = "TOLD\n" + told.join("\n") + "\nEND";
  document.body.append(out);
});
