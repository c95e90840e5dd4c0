// Conveniences only: without this script the page is whole, and the toggle still works.
"use strict";

const LANGUAGE = "lang:"; // no requirement's identifier has a colon
const radios = [...document.querySelectorAll("input[name=language]")];

function readHash() {
  const parts = decodeURIComponent(location.hash.slice(1)).split("&");
  return {
    language: parts.find((part) => part.startsWith(LANGUAGE))?.slice(LANGUAGE.length),
    target: parts.find((part) => part && !part.startsWith(LANGUAGE)),
  };
}

function hashOf({ language, target }) {
  return "#" + [target, language && LANGUAGE + language].filter(Boolean).join("&");
}

function speak(language) {
  for (const radio of radios) radio.checked = radio.value === language;
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  const headline = document.querySelector(`h1 .${language}`);
  if (headline) document.title = headline.textContent;
}

function reveal(id) {
  const target = id && document.getElementById(id);
  const folds = target?.querySelectorAll("details") ?? [];
  if (!folds.length) return;
  for (const details of folds) details.open = true;
  target.scrollIntoView({ block: "start" });
  folds[0].querySelector("summary").focus({ preventScroll: true });
}

function follow() {
  const { language, target } = readHash();
  if (language === "en" || language === "zh") speak(language);
  reveal(target);
}

for (const radio of radios) {
  radio.addEventListener("change", () => {
    history.replaceState(null, "", hashOf({ ...readHash(), language: radio.value }));
    speak(radio.value);
  });
}

document.addEventListener("click", (event) => {
  const tile = event.target.closest("a.tile");
  if (!tile) return;
  event.preventDefault();
  history.pushState(null, "", hashOf({ ...readHash(), target: tile.hash.slice(1) }));
  reveal(readHash().target);
});

let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const details of folded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of folded) details.open = false;
});
addEventListener("hashchange", follow);

speak(navigator.language.startsWith("zh") ? "zh" : "en");
follow();
