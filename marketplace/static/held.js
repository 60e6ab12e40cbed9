"use strict";
// A link or button of an answer that is being drawn anew acts in the new answer: in the old one it
// would go on from the question before, and what was just typed would be lost. It is found there by
// its words and by what it leads to; what stands twice, as a plan's name in a table, is not held.
const SOON = 600; // ms in which a change has become a request
let asked = null; // the form that changed last, when it did, and the mark of what was pressed since
let since = -Infinity;
let pressed = "";

const part = () => asked && document.querySelector(asked.getAttribute("hx-target"));
const waits = (now) => part()?.classList.contains("htmx-request") || now - since < SOON;
const mark = (one) => {
  const query = new URLSearchParams(one.search);
  const leads = [one.pathname, query.get("listing"), query.get("configuration")];
  return [one.textContent.trim(), ...leads].join("\n");
};
const marked = (wanted) =>
  [...(part()?.querySelectorAll("a[href], button") ?? [])].filter((one) => mark(one) === wanted);

function note({ type, target, timeStamp }) {
  const form = target.form;
  if (!form?.hasAttribute("hx-target") || !form.getAttribute("hx-trigger").includes(type)) return;
  [asked, since, pressed] = [form, timeStamp, ""];
}

function act() {
  const found = pressed ? marked(pressed) : [];
  forget();
  if (found.length === 1) found[0].click();
}

function forget() {
  [since, pressed] = [-Infinity, ""];
}

document.addEventListener("input", note, true);
document.addEventListener("change", note, true);
document.addEventListener("click", (event) => {
  const found = event.target.closest("a[href], button");
  if (!event.isTrusted || !found || !part()?.contains(found) || !waits(event.timeStamp)) return;
  const wanted = mark(found);
  if (event.ctrlKey || event.metaKey || event.shiftKey || marked(wanted).length > 1) return;
  event.preventDefault();
  event.stopPropagation();
  pressed = wanted;
  // Nothing was asked, as of a value that the form refuses: then the old answer stands.
  setTimeout(() => part()?.classList.contains("htmx-request") || act(), SOON);
}, true);
document.addEventListener("htmx:afterSettle", ({ detail }) => {
  if (asked && detail.target === part()) act();
});
// No answer came: kept, the press would act in the next one, whoever asks for it. A refusal of the
// server is shown as a page; a broken line may as well be somebody who went elsewhere meanwhile.
document.addEventListener("htmx:sendError", forget);
document.addEventListener("htmx:responseError", ({ detail }) => {
  forget();
  if (asked && detail.elt === asked) asked.submit();
});
