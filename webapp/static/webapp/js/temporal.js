// Temporal: the browser's own where it has one, else the polyfill.

if (!("Temporal" in globalThis)) {
  // @ts-expect-error -- the path exists where static files are served (webapp/finders.py)
  await import("../../npm/temporal-polyfill/global.js");
}
