"use strict";
// A button that copies beside every text to copy. Without scripts one click selects the whole text.
function offer(text) {
  if (text.previousElementSibling?.classList.contains("copies")) return;
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "plain-button copies", textContent: "Copy" });
  button.setAttribute("aria-label", `Copy: ${text.getAttribute("aria-label")}`);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text.textContent.trimEnd());
    button.textContent = "Copied";
  });
  text.before(button);
}

function offerAll() {
  if (navigator.clipboard) document.querySelectorAll("pre.copy").forEach(offer);
}

document.addEventListener("htmx:afterSettle", offerAll);
offerAll();
