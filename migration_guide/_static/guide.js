// What the tables need that a style sheet can't say (guide.css).
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table.docutils")) {
    // Each cell knows its column's name: on a phone, rows are lists.
    const names = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.children].forEach((cell, index) => {
        if (names[index]) cell.dataset.column = names[index];
      });
    }
    // Long names may break after an underscore, a dot or a slash, and nowhere else.
    const texts = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
    const all = [];
    while (texts.nextNode()) all.push(texts.currentNode);
    for (const text of all) {
      const [first, ...rest] = text.textContent.split(/(?<=[_/(]|[a-z]\.(?=[a-z]))/i);
      text.replaceWith(first, ...rest.flatMap((piece) => [document.createElement("wbr"), piece]));
    }
  }
  // A published guide is a folder for each version, beside a list of all of them.
  const above = new URL(`${document.documentElement.dataset.content_root}../`, document.baseURI);
  if (!above.protocol.startsWith("http")) return;
  fetch(new URL("versions.json", above)).then((answer) => answer.json()).then((versions) => {
    const choice = document.createElement("select");
    choice.id = "versions";
    choice.ariaLabel = "version";
    for (const version of versions) {
      const here = location.href.startsWith(new URL(`${version}/`, above).href);
      choice.add(new Option(version, version, here, here));
    }
    choice.onchange = () => location.assign(new URL(`${choice.value}/index.html`, above));
    document.querySelector(".sidebar-brand").after(choice);
  }).catch(() => {});  // a guide that was built alone has no such list
});
