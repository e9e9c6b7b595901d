'use strict';
// Nothing here is needed to read the page.
const all = (what, where = document) => [...where.querySelectorAll(what)];
// Sort by a column's button: numbers by data-v, other text by name.
for (const head of all('table.sort thead th:not(.wideonly)')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = head.textContent;
  head.replaceChildren(button);
  button.addEventListener('click', () => {
    const body = head.closest('table').tBodies[0], down = head.getAttribute('aria-sort') === 'ascending';
    all('th', head.parentNode).forEach(other => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const key = row => row.cells[head.cellIndex].dataset.v ?? row.cells[head.cellIndex].textContent;
    body.append(...[...body.rows].sort((a, b) => {
      const x = key(a), y = key(b), d = Number(x) - Number(y);
      if (x === '' || y === '') return (x === '') - (y === ''); // no number: last in both orders
      return (down ? -1 : 1) * (Number.isNaN(d) ? x.localeCompare(y) : d);
    }));
  });
}
// Filter by words and by lists of values; the number of rows left is announced.
for (const bar of all('.filters')) {
  const table = document.getElementById(bar.dataset.for), rows = [...table.tBodies[0].rows], count = bar.querySelector('output');
  bar.hidden = false;
  const apply = () => {
    const words = bar.querySelector('input').value.toLowerCase().split(/\s+/);
    const picks = all('select', bar).filter(s => s.value).map(s => [s.dataset.column, s.value]);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(w => text.includes(w)) || !picks.every(([c, v]) => row.cells[c].textContent === v);
    }
    count.textContent = `${rows.filter(r => !r.hidden).length} of ${rows.length} rows`;
  };
  bar.addEventListener('input', apply);
  apply();
}
// Exact numbers: the mark under the pointer, or the next one by the arrow keys, speaks its <title> in the figure's output.
for (const figure of all('figure[data-read]')) {
  const out = document.createElement('output'), marks = all('svg [data-t]', figure);
  let at = -1;
  out.textContent = 'Point at a mark, or press ← →, for its exact numbers.';
  figure.append(out);
  figure.tabIndex = 0;
  const show = i => {
    marks[at]?.removeAttribute('stroke');
    at = i;
    out.textContent = marks[i].dataset.t;
    marks[i].setAttribute('stroke', 'currentColor');
    marks[i].setAttribute('vector-effect', 'non-scaling-stroke');
  };
  figure.addEventListener('pointerover', e => { const i = marks.indexOf(e.target); if (i >= 0) show(i); });
  figure.addEventListener('keydown', e => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[e.key];
    if (!step || !marks.length) return;
    e.preventDefault();
    show((at + step + marks.length) % marks.length);
  });
}
for (const pre of all('pre[data-copy]')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  // Where a browser does not let a page copy, the text is selected for the reader to copy.
  const select = () => { getSelection().selectAllChildren(pre); button.textContent = 'Selected'; };
  button.addEventListener('click', () => navigator.clipboard ? navigator.clipboard.writeText(pre.textContent).then(() => { button.textContent = 'Copied'; }, select) : select());
  pre.before(button);
}
// A link to something folded opens it; so does printing.
const reveal = () => { for (let d = document.getElementById(location.hash.slice(1)); d; d = d.parentElement) if (d.tagName === 'DETAILS') d.open = true; };
addEventListener('hashchange', reveal);
addEventListener('beforeprint', () => all('details').forEach(d => { d.open = true; }));
reveal();
