"use strict";
// Draws the operations of a finding. Rows are streams and host threads; a box begins where the
// operations that it waits for end, so that boxes above each other may run at the same time.

const SVG = "http://www.w3.org/2000/svg";
const ROW = 72, BOX = 42, TOP = 12, GAP = 12, PITCH = 26, GAPPED = 34;

function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  for (const child of children) made.append(child);
  return made;
}

function shortened(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

function siteOf(step, files) {
  if (!step.place) return "";
  const name = files[step.place[0]];
  return name.slice(name.lastIndexOf("/") + 1) + ":" + step.place[1];
}

// Places of all boxes: {x, y, width, before} for each step, where `before` is how many operations
// between it and the one in front are not drawn.
function layOut(timeline, files) {
  const names = timeline.rows.map(row => row.name);
  const left = Math.min(220, 24 + 7.2 * Math.max(4, ...names.map(name => shortened(name, 28).length)));
  const ends = timeline.rows.map(() => left);
  const boxes = [];
  let from = left, last = -1;
  timeline.steps.forEach((step, i) => {
    const texts = [shortened(step.name, 30), shortened(siteOf(step, files), 30)];
    const width = Math.max(step.small ? 60 : 92, 18 + Math.max(7 * texts[0].length, 6.3 * texts[1].length));
    const before = i && step.number > last + 1 ? step.number - last - 1 : 0;
    let x = Math.max(from + (i ? PITCH : 0), ends[step.row] + GAP);
    if (timeline.order === "run" && i) x = Math.max(x, boxes[i - 1].x + boxes[i - 1].width + 6);
    for (const end of step.after) x = Math.max(x, boxes[end].x + boxes[end].width + 22);
    if (before) x = Math.max(x, Math.max(...ends) + GAPPED);
    boxes.push({x, y: TOP + step.row * ROW + (ROW - BOX) / 2, width, before, texts});
    ends[step.row] = x + width;
    from = timeline.rows[step.row].host && step.after.length ? x + width - PITCH + GAP : x;
    last = step.number;
  });
  return {boxes, left, width: Math.max(...ends, left + 120) + 20, height: TOP * 2 + ROW * names.length};
}

function edge(a, b, kind) {
  const downwards = b.y - a.y;
  const x1 = a.x + a.width, x2 = b.x, y1 = a.y + BOX / 2, y2 = b.y + BOX / 2;
  const bend = Math.max(16, (x2 - x1) / 2);
  const d = downwards === 0 && x2 > x1 ? `M${x1},${y1} L${x2 - 3},${y2}`
    : `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2 - 3},${y2}`;
  return svg("path", {class: kind, d, "marker-end": "url(#arrow)"});
}

// The edge that is missing, from the one box to the other, around what is between them.
function missingEdge(a, b, ran) {
  const down = b.y > a.y, same = b.y === a.y;
  const x1 = Math.min(a.x + a.width - 14, Math.max(a.x + 14, b.x)), x2 = Math.max(b.x + 14, Math.min(b.x + b.width - 14, x1));
  const y1 = same ? a.y : down ? a.y + BOX : a.y, y2 = same ? b.y : down ? b.y - 4 : b.y + BOX + 4;
  const d = same ? `M${x1},${y1} C${x1},${y1 - 22} ${x2},${y1 - 22} ${x2},${y1 - 4}` : `M${x1},${y1} L${x2},${y2}`;
  const text = svg("text", {class: "said", x: (x1 + x2) / 2 + 9, y: same ? y1 - 6 : (y1 + y2) / 2 + 4});
  text.textContent = "no order";
  return [svg("path", {class: "missing", d, ...(ran ? {} : {"marker-end": "url(#bad)"})}), text];
}

function draw(timeline, files, choose) {
  const {boxes, left, width, height} = layOut(timeline, files);
  const root = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": described(timeline)});
  const arrow = (id, kind) => svg("marker", {id, class: kind, viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto"},
    svg("path", {d: "M0,0 L8,4 L0,8 z"}));
  root.append(svg("defs", {}, arrow("arrow", ""), arrow("bad", "bad")));
  const labels = svg("g", {});
  timeline.rows.forEach((row, i) => {
    const y = TOP + i * ROW;
    root.append(svg("rect", {class: row.host ? "lane host" : "lane", x: 4, y: y + 3, width: width - 8, height: ROW - 6, rx: 5}));
    labels.append(svg("rect", {class: "under", x: 0, y: y + 4, width: left - 8, height: ROW - 8}));
    const label = svg("text", {class: "label", x: 13, y: y + ROW / 2 + 4});
    label.textContent = shortened(row.name, 28);
    const title = svg("title", {});
    title.textContent = row.name;
    label.append(title);
    labels.append(label);
  });
  boxes.forEach(box => {
    if (!box.before) return;
    const x = box.x - GAPPED / 2;
    root.append(svg("line", {class: "gap", x1: x, y1: TOP - 2, x2: x, y2: height - TOP}));
    const text = svg("text", {class: "gapped", x, y: height - 2, "text-anchor": "middle"});
    text.textContent = `${box.before.toLocaleString("en")} not drawn`;
    root.append(text);
  });
  const edges = [];
  timeline.steps.forEach((step, i) => {
    for (const end of step.after) {
      const path = edge(boxes[end], boxes[i], "edge");
      edges.push([i, path]);
      root.append(path);
    }
  });
  const groups = timeline.steps.map((step, i) => {
    const {x, y, width: w, texts} = boxes[i];
    const group = svg("g", {class: `op ${step.small ? "small" : ""} ${step.mark}`},
      svg("rect", {x, y, width: w, height: BOX, rx: step.small ? 12 : 5}));
    texts.forEach((text, line) => {
      const made = svg("text", {class: line ? "at" : "name", x: x + 9, y: y + (texts[1] ? 17 + 16 * line : 25)});
      made.textContent = text;
      group.append(made);
    });
    const title = svg("title", {});
    title.textContent = step.name + (step.place ? `\n${files[step.place[0]]}:${step.place[1]} in ${step.place[2]}` : "");
    group.append(title);
    group.addEventListener("click", () => choose(i));
    root.append(group);
    return group;
  });
  if (timeline.missing.length) root.append(...missingEdge(...timeline.missing.map(i => boxes[i]), timeline.order === "run"));
  root.append(labels);
  return {root, labels, boxes, groups, edges, width, height};
}

function described(timeline) {
  const marked = timeline.steps.filter(step => step.mark);
  return `Timeline of ${timeline.steps.length} operations on ${timeline.rows.map(row => row.name).join(", ")}. ` +
    marked.map(step => `${step.mark}: ${step.name} on ${timeline.rows[step.row].name}`).join("; ");
}
