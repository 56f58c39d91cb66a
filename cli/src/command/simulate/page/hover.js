// Tells what is under the pointer. Without it the page says the same, less precisely.
"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  for (const area of document.querySelectorAll(".area[data-plot]")) {
    const plot = plots[area.dataset.plot];
    if (!plot) continue;
    let tip, line;
    const gone = () => { tip?.remove(); line?.remove(); tip = line = undefined; };
    const show = (event) => {
      const box = area.getBoundingClientRect();
      const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 0.9999);
      const part = Math.floor(share * plot.x.length);
      if (!tip) {
        line = area.appendChild(Object.assign(document.createElement("div"), { className: "at" }));
        tip = area.appendChild(Object.assign(document.createElement("div"), { className: "tip" }));
      }
      line.style.left = `${share * 100}%`;
      tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: plot.x[part] }));
      for (const of of [...plot.lines].reverse()) {
        const row = tip.appendChild(document.createElement("div"));
        row.appendChild(Object.assign(document.createElement("i"), { className: of.class }));
        row.append(of.name);
        row.appendChild(Object.assign(document.createElement("span"), { textContent: `${of.values[part]} ${plot.unit}` }));
      }
      const left = share * box.width;
      tip.style.left = left > box.width / 2 ? `${Math.max(left - tip.offsetWidth - 12, -40)}px` : `${left + 12}px`;
    };
    area.addEventListener("pointermove", show);
    area.addEventListener("pointerdown", show);
    area.addEventListener("pointerleave", gone);
  }
})();
