"use strict";
// A slider beside every number that names its stops. Without scripts the number alone does it all.
for (const number of document.querySelectorAll("input[data-stops]")) {
  const stops = number.dataset.stops.split(",").map(Number);
  const slider = document.createElement("input");
  const label = document.querySelector(`label[for="${number.id}"]`);
  Object.assign(slider, { type: "range", className: "slider", min: 0, max: stops.length - 1, step: 1 });
  slider.setAttribute("aria-label", `${label ? label.textContent.trim() : number.name}, in steps`);
  const follow = () => {
    const wanted = Number(number.value);
    const distances = stops.map((stop) => Math.abs(stop - wanted));
    slider.value = number.value === "" ? 0 : distances.indexOf(Math.min(...distances));
    slider.setAttribute("aria-valuetext", number.value === "" ? "the usual" : number.value);
  };
  slider.addEventListener("input", () => {
    number.value = stops[slider.value];
    slider.setAttribute("aria-valuetext", number.value);
    number.dispatchEvent(new Event("input", { bubbles: true }));
  });
  number.addEventListener("input", follow);
  number.after(slider);
  follow();
}
