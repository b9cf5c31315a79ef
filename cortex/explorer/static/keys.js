// Keys: / searches, j and k go through a list, Enter opens. Everything works without this file.
(() => {
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const isTyping = (element) => element.closest("input, textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "/") {
      const field = document.querySelector("main input[type=search]") || document.querySelector("input[type=search]");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    } else if (event.key === "j" || event.key === "k") {
      const all = rows();
      if (!all.length) return;
      const at = all.findIndex((row) => row.contains(document.activeElement));
      const next = Math.min(Math.max(at + (event.key === "j" ? 1 : -1), 0), all.length - 1);
      const target = all[next].querySelector("a, button");
      if (target) { event.preventDefault(); target.focus(); all[next].scrollIntoView({ block: "nearest" }); }
    } else if (event.key.length === 1) {
      const row = rows().find((each) => each.contains(document.activeElement));
      const button = row && row.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (button) { event.preventDefault(); button.click(); }
    }
  });
  // What stands beside the page on a wide screen would come before it on a narrow one.
  if (matchMedia("(max-width: 57.99rem)").matches)
    document.querySelectorAll("details.narrow").forEach((element) => { element.open = false; });
})();
