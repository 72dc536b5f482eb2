"use strict";
(() => {
const { modes, base } = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const WIDTH = "min(220px, 36vw)", LEVEL = 1.05;
const short = (value, factor) => Number((value / factor).toPrecision(3)).toLocaleString("en-US");

function seconds(value) {
  const [factor, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]].find(([size]) => value >= size) || [1e-9, "ns"];
  return `${short(value, factor)} ${unit}`;
}

/** Two digits, so that the count reads as what it is: chosen on a slider. */
const runsAt = (place) => Number((10 ** place).toPrecision(2));

function said(totals) {
  const [least, ...others] = [...totals].sort((a, b) => a.total - b.total);
  const other = least.name === base ? others[0] : totals.find((mode) => mode.name === base) || others[0];
  const times = other.total / least.total;
  if (times < LEVEL) return `${least.name} and ${other.name} take about as long.`;
  return `${least.name === base ? "Stay" : "Use"} ${least.name}: in all ${Number(times.toPrecision(3))}× faster than ${other.name}.`;
}

function answer() {
  const runs = runsAt(Number(byId("runs").value));
  const totals = modes.map(({ name, early, steady }) => { const begun = Math.min(runs, early.length - 1); return { name, total: early[begun] + (runs - begun) * steady }; });
  const [least, most] = [Math.min, Math.max].map((end) => end(...totals.map((mode) => mode.total)));
  byId("count").textContent = runs.toLocaleString("en-US");
  byId("runs").setAttribute("aria-valuetext", `${runs.toLocaleString("en-US")} runs`);
  byId("answer").textContent = said(totals);
  byId("rows").replaceChildren(...totals.map(({ name, total }) => {
    const row = document.createElement("tr"), bar = document.createElement("i");
    const [head, cell] = [document.createElement("th"), document.createElement("td")];
    head.scope = "row";
    head.textContent = name;
    bar.style.width = `max(1px, ${total / most} * ${WIDTH})`;
    cell.append(bar, seconds(total));
    row.append(head, cell);
    row.className = total === least ? "least" : "";
    return row;
  }));
}

byId("runs").addEventListener("input", answer);
answer();
})();
