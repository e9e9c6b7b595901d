'use strict';
// Tables: a button in each head sorts, a field above filters. Without scripts they stay as written.
for (const table of document.querySelectorAll('table.sortable')) {
  const body = table.tBodies[0];
  table.querySelectorAll('thead th').forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      for (const other of table.querySelectorAll('thead th')) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const order = (a, b) => {
        const x = key(a), y = key(b), n = parseFloat(x) - parseFloat(y);
        return Number.isNaN(n) ? x.localeCompare(y) : n;
      };
      body.append(...[...body.rows].sort((a, b) => (down ? -1 : 1) * order(a, b)));
    });
  });
  if (body.rows.length < 8) continue;
  const label = document.createElement('label');
  label.className = 'filter';
  label.append('Filter: ');
  const field = document.createElement('input');
  field.type = 'search';
  label.append(field);
  (table.closest('.scroll') ?? table).before(label);
  field.addEventListener('input', () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    }
  });
}
// A link to a row opens the list that the row is in.
const reveal = () => {
  const target = document.getElementById(location.hash.slice(1)), list = target?.closest('details');
  if (list && !list.open) {
    list.open = true;
    target.scrollIntoView();
  }
};
addEventListener('hashchange', reveal);
reveal();
// Timelines: the wheel or the buttons zoom, dragging moves.
for (const box of document.querySelectorAll('.timeline')) {
  const svg = box.querySelector('svg'), whole = svg.viewBox.baseVal.width, view = svg.viewBox.baseVal;
  const zoom = (factor, at) => {
    const width = Math.min(whole, Math.max(whole / 500, view.width * factor));
    view.x = Math.min(whole - width, Math.max(0, at - (at - view.x) * width / view.width));
    view.width = width;
    svg.setAttribute('preserveAspectRatio', 'none');
  };
  const bar = document.createElement('p');
  bar.className = 'zoom';
  for (const [text, action] of [['+', () => zoom(.5, view.x + view.width / 2)], ['\u2212', () => zoom(2, view.x + view.width / 2)],
    ['\u2190', () => zoom(1, view.x, view.x = Math.max(0, view.x - view.width / 4))],
    ['\u2192', () => { view.x = Math.min(whole - view.width, view.x + view.width / 4); }], ['all', () => zoom(1e9, 0)]]) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = text;
    button.addEventListener('click', action);
    bar.append(button, ' ');
  }
  box.prepend(bar);
  svg.addEventListener('wheel', event => {
    event.preventDefault();
    const place = svg.getBoundingClientRect();
    zoom(event.deltaY < 0 ? .8 : 1.25, view.x + (event.clientX - place.left) / place.width * view.width);
  }, {passive: false});
  svg.addEventListener('pointermove', event => {
    if (event.buttons !== 1) return;
    const width = svg.getBoundingClientRect().width;
    view.x = Math.min(whole - view.width, Math.max(0, view.x - event.movementX / width * view.width));
  });
}
