// Ten minutes of use as a line. Readings that are missing leave a gap: unknown is not zero.

const WINDOW_S = 600;
// Samples come every 10 s while nobody looks; longer silence is a gap.
const GAP_S = 35;

/** @typedef {[number, number | null][]} Ring epoch seconds and percent */

/** @param {Ring} ring @param {[number, number | null]} point @returns {Ring} */
export function pushed(ring, point) {
  const oldest = point[0] - WINDOW_S;
  return [...ring.filter(([at]) => at >= oldest && at < point[0]), point];
}

/** The runs of readings without a gap. @param {Ring} ring @returns {[number, number][][]} */
export function runs(ring) {
  /** @type {[number, number][][]} */
  const found = [];
  let before = Number.NEGATIVE_INFINITY;
  for (const [at, percent] of ring) {
    if (percent === null) continue;
    if (at - before > GAP_S) found.push([]);
    found[found.length - 1].push([at, percent]);
    before = at;
  }
  return found;
}

/** @param {HTMLCanvasElement} canvas @param {Ring} ring @param {number} now_s */
export function drawSpark(canvas, ring, now_s) {
  const scale = globalThis.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== width * scale) canvas.width = width * scale;
  if (canvas.height !== height * scale) canvas.height = height * scale;
  const context = canvas.getContext("2d");
  if (!context) return;
  const style = getComputedStyle(canvas);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const x = (/** @type {number} */ at) => ((at - now_s + WINDOW_S) / WINDOW_S) * width;
  const y = (/** @type {number} */ percent) => height - 2 - (percent / 100) * (height - 4);
  context.strokeStyle = style.getPropertyValue("--line");
  context.beginPath();
  context.moveTo(0, height - 1);
  context.lineTo(width, height - 1);
  context.stroke();
  context.strokeStyle = style.getPropertyValue("--busy");
  context.fillStyle = style.getPropertyValue("--busy-soft");
  context.lineWidth = 1.5;
  for (const run of runs(ring)) {
    context.beginPath();
    for (const [at, percent] of run) context.lineTo(x(at), y(percent));
    context.stroke();
    context.lineTo(x(run[run.length - 1][0]), height - 1);
    context.lineTo(x(run[0][0]), height - 1);
    context.globalAlpha = 0.5;
    context.fill();
    context.globalAlpha = 1;
  }
}
