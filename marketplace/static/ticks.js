"use strict";
// Ticked rows stay ticked when a filter draws the table anew, as far as they are still in it.
// A page that the browser goes back to is swapped in whole: such a swap names no target.
const boxes = (only = "") => [...document.querySelectorAll(`#results input[name=pick]${only}`)];
let ticked = new Set();

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target?.id === "results") ticked = new Set(boxes(":checked").map((box) => box.value));
});
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.target?.id !== "results") return;
  for (const box of boxes()) box.checked = ticked.has(box.value);
});
