// Shows one finding at a time. All texts are set as text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
for (const {timeline} of data.results) {
  if (!timeline) continue;
  timeline.steps = timeline.steps.map(([name, kind, small, row, place, mark, after, number]) => ({name, kind, small, row, place, mark, after, number}));
}
const detail = document.getElementById("detail");
const buttons = [...document.querySelectorAll("#findings button")];
const search = document.getElementById("search");
const MARKS = {first: "first operation", second: "second operation", held: "held back", until: "runs before it"};
let shown = -1, view = null;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter(child => child !== null && child !== undefined && child !== ""));
  return made;
}

function button(text, label, press) {
  const made = element("button", {type: "button", "aria-label": label, title: label}, text);
  made.addEventListener("click", press);
  return made;
}

function place(at) { return `${data.files[at[0]]}:${at[1]}`; }

function lines(at) {
  const kept = data.lines[at[0]], pre = element("pre", {tabindex: "0"});
  for (let line = at[1] - 4; line <= at[1] + 4; line++) {
    if (kept[line] === undefined) continue;
    pre.append(element("span", line === at[1] ? {class: "here"} : {}, element("i", {}, String(line)), kept[line]));
  }
  return pre.childElementCount ? pre : element("p", {class: "box quiet"}, "The source is not known.");
}

function source(at, kind, heading, callers = []) {
  const card = element("section", {class: `source ${kind}`},
    element("h4", {}, heading, element("span", {}, `${place(at)} in ${at[2] || "<module>"}`)), lines(at));
  if (callers.length) card.append(element("ol", {}, ...callers.map(one => element("li", {}, `called from ${place(one)} in ${one[2]}`))));
  return card;
}

// The places of a finding: each with the calls that led there.
function sources(result) {
  const groups = [];
  for (const at of result.places) {
    if (at[3] === "called from here" && groups.length) groups[groups.length - 1].callers.push(at);
    else groups.push({at, callers: []});
  }
  const box = element("div", {class: "sources"});
  const operations = groups.filter(one => one.at[3] !== "the memory");
  const ordered = operations.length === 2 ? [operations[1], operations[0]] : operations;
  ordered.forEach((one, i) => {
    const heading = ordered.length === 2 ? `${i + 1}. ${one.at[3]}` : one.at[3];
    box.append(source(one.at, ordered.length === 2 ? (i ? "second" : "first") : "", heading, one.callers));
  });
  if (result.timeline && result.timeline.order === "run") {
    for (const one of result.timeline.steps) {
      if (one.mark && one.place) box.append(source(one.place, one.mark === "until" ? "second" : "held", `${one.name}: ${MARKS[one.mark]}`));
    }
  }
  for (const one of groups) if (one.at[3] === "the memory") box.append(source(one.at, "", "The memory was made here", one.callers));
  return box;
}

function legend(timeline) {
  const sample = (kind, round) => {
    const box = svg("svg", {width: 22, height: 12});
    box.append(svg("g", {class: `op ${kind}`}, svg("rect", {x: 1, y: 1, width: 20, height: 10, rx: round})));
    return box;
  };
  const line = kind => {
    const box = svg("svg", {width: 26, height: 12});
    box.append(svg("path", {class: kind, d: "M0,6 L26,6"}));
    return box;
  };
  const entries = timeline.order === "run"
    ? [[sample("held", 3), "held back by the schedule"], [sample("until", 3), "runs before it, which makes it fail"], [line("missing"), "nothing orders the two"]]
    : [[sample("first", 3), "the two operations on the same bytes"], [line("missing"), "the order that is missing"]];
  entries.push([sample("", 3), "another operation"], [sample("small", 6), "record, wait or call of the host"], [line("edge"), "comes first, guaranteed by a wait"]);
  return element("ul", {class: "legend"}, ...entries.map(([picture, text]) => element("li", {}, picture, text)));
}

function drawing(timeline) {
  const now = element("span", {class: "now", "aria-live": "polite"});
  const near = element("div", {class: "sources", id: "step-source"});
  const picture = draw(timeline, data.files, i => step(i));
  const scroll = element("div", {class: "scroll", tabindex: "0", "aria-label": "Timeline, scroll to see all of it"}, picture.root);
  const last = timeline.steps.length - 1;
  const percent = element("span", {class: "quiet", id: "zoom"});
  let at = -1, scale = 1;
  // The names of the rows stay in sight.
  const keepLabels = () => picture.labels.setAttribute("transform", `translate(${scroll.scrollLeft / scale})`);
  scroll.addEventListener("scroll", keepLabels);
  const previous = button("◀", "Previous step (left arrow)", () => step(at - 1));
  const next = button("▶", "Next step (right arrow)", () => step(at + 1));

  function zoom(to) {
    scale = Math.min(4, Math.max(0.15, to));
    picture.root.setAttribute("width", picture.width * scale);
    picture.root.setAttribute("height", picture.height * scale);
    keepLabels();
    percent.textContent = `${Math.round(scale * 100)} %`;
  }
  function fit() { zoom(Math.min(1.4, (scroll.clientWidth || picture.width) / picture.width)); }
  function reveal(i) {
    const box = picture.boxes[i];
    scroll.scrollLeft = (box.x + box.width / 2) * scale - scroll.clientWidth / 2;
  }
  function step(to) {
    at = Math.min(last, Math.max(0, to));
    picture.groups.forEach((group, i) => {
      group.classList.toggle("now", i === at);
      group.classList.toggle("later", i > at);
    });
    for (const [end, path] of picture.edges) path.classList.toggle("later", end > at);
    const one = timeline.steps[at];
    now.textContent = `Step ${at + 1} of ${last + 1}: ${one.name} on ${timeline.rows[one.row].name}` + (one.mark ? ` (${MARKS[one.mark]})` : "");
    near.replaceChildren();
    if (one.place) near.append(source(one.place, "step", `Step ${at + 1}: ${one.name}`));
    previous.disabled = at === 0;
    next.disabled = at === last;
    reveal(at);
  }
  // Everything is drawn in full until somebody steps.
  function begin() {
    fit();
    if (scale < 0.7) zoom(0.9);
    now.textContent = timeline.order === "run" ? "The order that fails: step through it with the arrow keys." : "Left to right in the order of the calls. Arrow keys step through.";
    previous.disabled = true;
    const marked = timeline.steps.findIndex(one => one.mark);
    reveal(Math.max(0, marked));
  }
  const bar = element("div", {class: "bar"}, previous, next, now, percent,
    button("−", "Zoom out (minus)", () => zoom(scale / 1.25)), button("+", "Zoom in (plus)", () => zoom(scale * 1.25)), button("Fit", "Fit the width (0)", fit));
  const box = element("div", {},
    element("div", {class: "drawing"}, bar, scroll), legend(timeline),
    timeline.note ? element("p", {class: "quiet"}, timeline.note + ".") : "", near);
  return {box, begin, fit, zoom: factor => zoom(scale * factor), move: by => step(at < 0 ? (by > 0 ? 0 : last) : at + by)};
}

function patch(text) {
  const pre = element("pre", {class: "diff", tabindex: "0"});
  for (const line of text.split("\n")) {
    const kind = /^(---|\+\+\+|@@)/.test(line) ? "at" : line.startsWith("+") ? "add" : "";
    pre.append(element("span", kind ? {class: kind} : {}, line || " "));
  }
  return pre;
}

function fixOf(result) {
  const fix = result.fix;
  if (!fix) return [];
  const said = fix.proven ? "Tried on the recorded run: with it the finding goes away and nothing waits for ever." : "A suggestion that was not tried.";
  const body = result.diff ? patch(result.diff) : element("p", {class: "box"}, `${fix.where}: `, element("code", {}, fix.code));
  return [element("h3", {}, "Fix"), body, element("p", {class: "quiet"}, said)];
}

function show(index) {
  if (!data.results[index]) return;
  shown = index;
  const result = data.results[index];
  for (const one of buttons) one.setAttribute("aria-current", String(Number(one.dataset.index) === index));
  const [title, ...why] = result.title.split("; ");
  const fails = result.token && result.text.match(/^It fails .*?(?=\.?$)/m);
  if (fails) why.push(fails[0]);
  const facts = [result.count > 1 ? `seen ${result.count.toLocaleString("en")} times` : "", result.test ? `in ${result.test}` : ""].filter(Boolean);
  view = result.timeline && result.timeline.steps.length ? drawing(result.timeline) : null;
  detail.replaceChildren(
    element("h2", {}, title[0].toUpperCase() + title.slice(1)),
    element("p", {class: "why"}, why.length ? `Why: ${why.join("; ")}.` : result.rule),
    facts.length ? element("p", {class: "why quiet"}, facts.join(" · ")) : "",
    ...(view ? [element("h3", {}, "What happened"), view.box] : []),
    ...(result.places.length ? [element("h3", {}, "Where"), sources(result)] : []),
    ...fixOf(result),
    ...(result.token ? [element("h3", {}, "Run it again"), element("p", {class: "box"}, element("code", {}, `--stream-replay=${result.token}`))] : []),
    element("details", result.timeline ? {} : {open: ""}, element("summary", {}, "The report as text"), element("pre", {class: "text box"}, result.text)));
  if (view) view.begin();
  history.replaceState(null, "", `#finding-${index + 1}`);
}

function visible() { return buttons.filter(one => !one.parentElement.hidden); }

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const one of buttons) {
    const text = one.textContent.toLowerCase();
    one.parentElement.hidden = !words.every(word => text.includes(word));
  }
  const left = visible();
  document.getElementById("matches").textContent = words.length ? `${left.length} of ${buttons.length} findings` : "";
  if (left.length && !left.some(one => Number(one.dataset.index) === shown)) show(Number(left[0].dataset.index));
}

function moveFinding(by) {
  const all = visible();
  const at = all.findIndex(one => Number(one.dataset.index) === shown) + by;
  if (all[at]) {
    show(Number(all[at].dataset.index));
    all[at].scrollIntoView({block: "nearest"});
    if (document.activeElement.closest("#findings")) all[at].focus();
  }
}

const KEYS = {
  ArrowRight: () => view && view.move(1), ArrowLeft: () => view && view.move(-1),
  ArrowDown: () => moveFinding(1), ArrowUp: () => moveFinding(-1), j: () => moveFinding(1), k: () => moveFinding(-1),
  "+": () => view && view.zoom(1.25), "=": () => view && view.zoom(1.25), "-": () => view && view.zoom(0.8), "0": () => view && view.fit(),
  "/": () => search.focus(),
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === search) {
    if (event.key === "Escape") search.blur();
    return;
  }
  const vertical = event.key === "ArrowUp" || event.key === "ArrowDown";
  if (!KEYS[event.key] || (vertical && !event.target.closest("#findings"))) return;
  event.preventDefault();
  KEYS[event.key]();
});
for (const one of buttons) one.addEventListener("click", () => show(Number(one.dataset.index)));
search.addEventListener("input", filter);
document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});
if (buttons.length) {
  const asked = /^#finding-(\d+)$/.exec(location.hash);
  show(Math.min(buttons.length, asked ? Number(asked[1]) : 1) - 1);
} else {
  detail.append(element("p", {class: "box"}, "Nothing was found."));
}
