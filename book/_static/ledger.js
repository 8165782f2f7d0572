// The ledger's filters. The form is hidden until this script runs; without it the page shows every claim.
// What is chosen stands in the address behind the #, so that a filtered table can be linked to.
(() => {
  "use strict";
  const FIELDS = ["task", "architecture", "verdict", "words"];

  const set = (box) => {
    const form = box.querySelector(".ledger-filters");
    if (!form || form.dataset.ready) return;
    form.dataset.ready = "yes";
    const claims = [...box.querySelectorAll("tbody[data-claim]")];
    const said = form.querySelector("output");

    const chosen = () => Object.fromEntries(FIELDS.map((name) => [name, form.elements[name].value.trim()]));

    const show = () => {
      const want = chosen();
      const has = (row, name) => !want[name] || (row.dataset[name] || "").split(" ").includes(want[name]);
      let count = 0;
      for (const claim of claims) {
        const rows = [...claim.querySelectorAll(":scope > tr[data-task]")];
        let some = false;
        for (const row of rows) {
          row.hidden = !(has(row, "task") && has(row, "architecture"));
          some ||= !row.hidden;
        }
        const of = claim.dataset;
        const words = want.words.toLowerCase().split(/\s+/).filter(Boolean);
        const folded = [...claim.querySelectorAll("details[data-words]")];
        const within = (...texts) => words.every((word) => texts.some((text) => text.includes(word)));
        if (!rows.some((row) => row.dataset.task)) some = has(claim, "task") && has(claim, "architecture"); // V1 to V3
        some = some && (!want.verdict || of.verdict === want.verdict);
        some = some && within(of.words, ...folded.map((details) => details.dataset.words));
        for (const details of folded) {
          // Opened where what is searched for stands below the fold, and closed again if it was opened for that.
          const inside = words.some((word) => !of.words.includes(word) && details.dataset.words.includes(word));
          if (inside && !details.open) details.dataset.opened = "yes";
          if (inside || details.dataset.opened) details.open = inside;
          if (!inside) delete details.dataset.opened;
        }
        claim.hidden = !some;
        count += some ? 1 : 0;
      }
      said.textContent = `${count} of ${claims.length} claims`;
    };

    const remember = () => {
      const want = Object.entries(chosen()).filter(([, value]) => value);
      const address = want.length ? `#${new URLSearchParams(want)}` : location.pathname + location.search;
      history.replaceState(null, "", address);
    };

    // "#task=escan&verdict=reproduced"; any other hash is a place on the page and changes nothing.
    const restore = () => {
      const given = new URLSearchParams(location.hash.slice(1));
      if (![...given.keys()].some((name) => FIELDS.includes(name))) return false;
      for (const name of FIELDS) {
        const field = form.elements[name], value = given.get(name) ?? "";
        const known = !field.options || [...field.options].some((option) => option.value === value);
        field.value = known ? value : "";
      }
      show();
      return true;
    };

    form.addEventListener("input", () => { show(); remember(); });
    form.addEventListener("reset", () => setTimeout(() => { show(); remember(); }));
    form.addEventListener("submit", (event) => event.preventDefault());
    // A link to a claim that a filter hides shows all.
    const arrive = () => {
      const claim = document.getElementById(location.hash.slice(1))?.closest("tbody[data-claim]");
      if (!claim?.hidden || !box.contains(claim)) return;
      for (const name of FIELDS) form.elements[name].value = "";
      show();
      claim.scrollIntoView();
    };

    addEventListener("hashchange", () => restore() || arrive());
    form.hidden = false;
    if (restore()) form.scrollIntoView({ block: "center" });
    else show();
  };

  const start = () => document.querySelectorAll(".ledger").forEach(set);
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
  else start();
})();
