'use strict';
// The wheel zooms about the pointer, dragging moves; both figures share one scale of time.
const figures = [...document.querySelectorAll('svg')];
const end = 1e6; // units of the figures
const nanoseconds = Number(document.body.dataset.end);
let from = 0, width = end;
const ms = units => (units / end * nanoseconds / 1e6).toFixed(3) + ' ms';
function draw() {
  for (const f of figures) {
    const height = f.viewBox.baseVal.height;
    f.setAttribute('viewBox', `${from} 0 ${width} ${height}`);
  }
  document.getElementById('scale').textContent = `${ms(from)} to ${ms(from + width)}`;
}
for (const f of figures) {
  f.addEventListener('wheel', e => {
    e.preventDefault();
    const at = from + width * e.offsetX / f.clientWidth;
    const next = Math.min(end, Math.max(0.1, width * (e.deltaY > 0 ? 1.25 : 0.8)));
    from = Math.max(0, Math.min(end - next, at - (at - from) * next / width));
    width = next;
    draw();
  }, { passive: false });
  f.addEventListener('pointermove', e => {
    if (e.buttons !== 1) return;
    from = Math.max(0, Math.min(end - width, from - e.movementX * width / f.clientWidth));
    draw();
  });
  f.addEventListener('click', e => {
    const title = e.target.querySelector('title');
    if (title) document.getElementById('detail').textContent = title.textContent;
  });
}
draw();
