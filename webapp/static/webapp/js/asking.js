// Forms that ask first: those that take something away from somebody.

import { closest } from "./dom.js";

document.addEventListener("submit", (event) => {
  const form = closest(event.target, "form[data-ask]");
  if (form && !confirm(form.dataset.ask)) event.preventDefault();
});
