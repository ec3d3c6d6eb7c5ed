"use strict";
(() => {
  const table = document.getElementById("changes");
  if (!table) return;
  const bodies = [...table.tBodies];
  const found = document.getElementById("found");
  const all = document.getElementById("all");

  const expand = (body, open) => {
    body.querySelector(".toggle").setAttribute("aria-expanded", open);
    body.querySelector(".detail").classList.toggle("open", open);
  };
  const isOpen = (body) => body.querySelector(".detail").classList.contains("open");

  bodies.forEach((body) => {
    const toggle = body.querySelector(".toggle");
    toggle.addEventListener("click", () => expand(body, !isOpen(body)));
  });

  all.addEventListener("click", () => {
    const open = all.getAttribute("aria-pressed") !== "true";
    all.setAttribute("aria-pressed", open);
    all.textContent = open ? "Collapse all" : "Expand all";
    bodies.forEach((body) => expand(body, open));
  });

  const MOST = 50;
  const others = document.getElementById("others");
  const data = document.getElementById("other-states");
  let states = null;
  const showOthers = (words) => {
    if (!others) return "";
    states ??= JSON.parse(data.textContent).map(([state, visits, now]) =>
      ({ cells: [state, visits.toLocaleString("en"), now], text: `${state} ${now}`.toLowerCase() }));
    const fits = words.length ? states.filter(({ text }) => words.every((w) => text.includes(w))) : [];
    others.tBodies[0].replaceChildren(...fits.slice(0, MOST).map(({ cells }) => {
      const row = document.createElement("tr");
      cells.forEach((cell, k) => {
        const place = row.insertCell();
        place.textContent = cell;
        if (k === 1) place.className = "n";
      });
      return row;
    }));
    others.classList.toggle("hidden", !fits.length);
    const first = fits.length > MOST ? `, the first ${MOST} below` : fits.length ? ", below" : "";
    return words.length ? `; ${fits.length} of ${states.length} other states${first}` : "";
  };

  const search = document.getElementById("search");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    bodies.forEach((body) => {
      const fits = words.every((word) => body.dataset.text.includes(word));
      body.classList.toggle("hidden", !fits);
      shown += fits;
    });
    found.textContent = `${shown} of ${bodies.length} rows${showOthers(words)}`;
  });

  const byText = (a, b) => a.localeCompare(b, undefined, { numeric: true });
  table.querySelectorAll("th[data-key]").forEach((head) => {
    head.querySelector("button").addEventListener("click", () => {
      const key = head.dataset.key;
      const text = key === "state";
      const was = head.getAttribute("aria-sort");
      const up = was ? was === "descending" : text;
      table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const order = [...bodies].sort((a, b) => {
        const [x, y] = [a.dataset[key], b.dataset[key]];
        const difference = text ? byText(x, y) : x - y;
        return up ? difference : -difference;
      });
      table.append(...order);
    });
  });
})();
