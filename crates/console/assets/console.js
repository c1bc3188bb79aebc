// What the console adds where there is script: times in the viewer's zone, countdowns, dialogs, live regions, shortcuts.
// Every page works without it.

const body = document.body;
const base = body.dataset.base;
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const one = (selector, root = document) => root.querySelector(selector);

// Times. The service may have another clock than this machine.

const ahead = body.dataset.now ? new Date(body.dataset.now) - Date.now() : 0;

const zone = body.dataset.zone;
const options = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", fractionalSecondDigits: 3 };
const universal = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
const zoned = (() => {
  if (!zone || zone === "UTC") return null;
  try {
    return new Intl.DateTimeFormat("en-GB", zone === "local" ? options : { ...options, timeZone: zone });
  } catch {
    return null;
  }
})();

// In the zone of the viewer; of a page that has no other zone than UTC, in UTC.
function inZone(element, kind) {
  const part = Object.fromEntries((zoned ?? universal).formatToParts(new Date(element.dateTime)).map(({ type, value }) => [type, value]));
  const millis = kind === "millis" ? `.${part.fractionalSecond}` : "";
  const year = kind === "short" && part.year === String(new Date().getFullYear()) ? "" : ` ${part.year}`;
  return `${part.day} ${part.month.slice(0, 3)}${year} ${part.hour}:${part.minute}:${part.second}${millis}`;
}

function showTime(element) {
  if (zoned) element.textContent = inZone(element, element.dataset.time);
}

function length(seconds) {
  const two = (large, name, small, rest) => {
    const more = Math.floor((seconds % large) / small);
    return `${Math.floor(seconds / large)} ${name}${more ? ` ${more} ${rest}` : ""}`;
  };
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return two(60, "min", 1, "s");
  if (seconds < 86400) return two(3600, "h", 60, "min");
  return two(86400, "d", 3600, "h");
}

function distance(element) {
  const away = (new Date(element.dateTime) - Date.now() - ahead) / 1000;
  const seconds = Math.floor(Math.abs(away));
  return seconds === 0 ? "now" : away > 0 ? `in ${length(seconds)}` : `${length(seconds)} ago`;
}

function showDistance(element) {
  const text = distance(element);
  if (element.textContent !== text) element.textContent = text;
}

// A pointer over an instant tells how far away it is, and over a distance which instant is meant.
document.addEventListener("pointerover", (event) => {
  const time = event.target.closest?.("time[datetime]");
  if (time) time.title = `${time.matches("[data-distance]") ? inZone(time, "millis") : distance(time)} · ${time.dateTime}`;
});

function enhance(root) {
  all("time[data-time]", root).forEach(showTime);
  all("time[data-distance]", root).forEach(showDistance);
  all("[data-copy]", root).forEach((button) => (button.hidden = false));
  all("#select-all", root).forEach((box) => (box.hidden = false));
  countSelected();
}

setInterval(() => all("time[data-distance]").forEach(showDistance), 1000);

// Selections.

function countSelected() {
  const count = one("#selected-count");
  if (!count) return;
  const selected = all('td.tick input:checked').length;
  count.textContent = selected ? `${selected} selected` : "Select timers, or act on all that match";
}

document.addEventListener("change", (event) => {
  if (event.target.id === "select-all") all("td.tick input").forEach((box) => (box.checked = event.target.checked));
  if (event.target.closest(".tick")) countSelected();
});

// Copies and dialogs.

const dialog = one("#dialog");

async function openDialog(link) {
  try {
    const answer = await fetch(link, { headers: { "X-Fragment": "dialog" } });
    const text = await answer.text();
    if (!answer.ok || answer.redirected || text.includes("<html")) throw new Error("no fragment");
    dialog.innerHTML = text;
    dialog.setAttribute("aria-labelledby", "confirm-title");
    enhance(dialog);
    dialog.showModal();
    one("button.main, button.danger", dialog)?.focus();
  } catch {
    location.href = link;
  }
}

document.addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const said = copy.textContent;
    navigator.clipboard?.writeText(copy.dataset.copy).then(() => {
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = said), 1200);
    });
    return;
  }
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  const asks = event.target.closest("a[data-dialog]");
  if (asks && dialog) {
    event.preventDefault();
    openDialog(asks.href);
  } else if (event.target.closest("dialog [data-close]")) {
    event.preventDefault();
    event.target.closest("dialog").close();
  }
});

// A menu closes when something else is meant.
const closeMenus = (except) => all("details.menu[open]").filter((menu) => menu !== except).forEach((menu) => (menu.open = false));
document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));
document.addEventListener("keydown", (event) => event.key === "Escape" && closeMenus());

// Forms that show only what belongs to the kind that is chosen, and tell what a time means.

function showKinds() {
  for (const choice of all("[data-shows]")) {
    const kind = choice.type === "radio" ? one(`[name="${choice.name}"]:checked`)?.value : choice.value;
    all(`[data-kind^="${choice.name}:"]`).forEach((part) => (part.hidden = part.dataset.kind !== `${choice.name}:${kind}`));
  }
}
document.addEventListener("change", (event) => {
  showKinds();
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});
// What the fields mean is told by the server, while they are being filled in.

let previews = 0;

async function preview(form) {
  const current = ++previews;
  try {
    const answer = await fetch(form.dataset.preview, { method: "POST", headers: { "X-Fragment": "preview" }, body: new URLSearchParams(new FormData(form)) });
    const template = document.createElement("template");
    template.innerHTML = await answer.text();
    if (!answer.ok || answer.redirected || current !== previews) return;
    enhance(template.content);
    all("[id]", template.content).forEach((part) => document.getElementById(part.id)?.replaceWith(part));
  } catch { /* What was told stays. */ }
}

// A date that is still to be written is one of the viewer's own zone.
const dateZone = one("#form-zone");
if (dateZone && zone === "local" && !one("[name=date]").value) dateZone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

let changing = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-preview]");
  if (!form) return;
  clearTimeout(changing);
  changing = setTimeout(preview, 300, form);
});
all("[data-submitted]").forEach((button) => (button.hidden = true));

// Live regions.

const toggle = one("#live");
const stored = { get: (name) => { try { return localStorage.getItem(name); } catch { return null; } }, set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* Not kept. */ } } };
let wanted = stored.get("timer-live") !== "off";
let stream = null;

// A form that was sent leads elsewhere.
let isSent = false;
document.addEventListener("submit", (event) => (isSent ||= event.target.method !== "dialog"));

// A row without what only counts time.
const content = (row) => row.outerHTML.replace(/<time[^>]*data-distance[^]*?<\/time>| title="[^"]*"/g, "");

// Regions that could not be shown when they came: the server does not send them again.
const late = new Map();
const written = "input:not([type=checkbox], [type=hidden]), textarea, select";

// Whether this region is written in.
function isWrittenIn(region) {
  return all(written, region).some((field) => field === document.activeElement || field.value !== (field.defaultValue ?? field.value));
}

function showLate() {
  if (dialog?.open) return;
  for (const [id, html] of late) {
    const old = document.getElementById(id);
    if (old && isWrittenIn(old)) continue;
    late.delete(id);
    old && replace(old, html);
  }
}

dialog?.addEventListener("close", showLate);
// Later: what is clicked instead must still be there.
document.addEventListener("focusout", () => late.size && setTimeout(showLate, 300));

function replace(old, html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const fresh = template.content.firstElementChild;
  if (!fresh) return;
  if (!fresh.hasChildNodes() && old.hasChildNodes()) return isSent || location.reload();
  const checked = new Set(all("td.tick input:checked", old).map((box) => box.value));
  all("td.tick input", fresh).forEach((box) => (box.checked = checked.has(box.value)));
  all("details", fresh).forEach((part) => (part.open = document.getElementById(part.id)?.open ?? part.open));
  const row = one("tr[aria-selected]", old)?.dataset.row;
  if (row) all("tr[data-row]", fresh).find((part) => part.dataset.row === row)?.setAttribute("aria-selected", "true");
  const focused = document.activeElement;
  const key = (part) => [part.closest("details")?.id, part.href, part.value, part.dataset.copy].join();
  const left = one(".table", old)?.scrollLeft ?? 0;
  // Rows that are new are marked for a moment.
  const known = new Set(all("tr[data-row]", old).map(content));
  enhance(fresh);
  old.replaceWith(fresh);
  if (left) one(".table", fresh).scrollLeft = left;
  if (old.contains(focused)) all(focused.tagName, fresh).find((part) => key(part) === key(focused))?.focus({ preventScroll: true });
  if (known.size) all("tr[data-row]", fresh).filter((part) => !known.has(content(part))).forEach((part) => part.classList.add("fresh"));
  countSelected();
}

function connect() {
  if (stream || !wanted || document.hidden || !one("[data-live]")) return;
  const view = location.pathname.slice(base.length) + location.search;
  stream = new EventSource(`${base}/live?view=${encodeURIComponent(view)}`);
  stream.addEventListener("region", (event) => {
    const { id, html } = JSON.parse(event.data);
    late.set(id, html);
    showLate();
  });
  // The store does not answer: what is shown is from before.
  stream.addEventListener("away", () => showAway(true));
  stream.addEventListener("back", () => showAway(false));
  // The session has ended, or the page is no more.
  stream.addEventListener("gone", () => location.reload());
  stream.onopen = () => {
    say(true);
    // A stream that begins is told so again, if it is.
    showAway(false);
  };
  stream.onerror = () => {
    say(false);
    // A refusal ends the stream for good.
    if (stream?.readyState === EventSource.CLOSED) {
      stream = null;
      setTimeout(connect, 5000);
    }
  };
}

function showAway(isAway) {
  one("#away").hidden = !isAway;
  one("#main").classList.toggle("stale", isAway);
}

function disconnect() {
  late.clear();
  stream?.close();
  stream = null;
}

function say(isOn) {
  toggle.textContent = isOn ? "● Live" : wanted ? "○ Connecting" : "‖ Paused";
  toggle.setAttribute("aria-pressed", String(wanted));
}

function switchLive() {
  wanted = !wanted;
  stored.set("timer-live", wanted ? "on" : "off");
  disconnect();
  say(false);
  connect();
}

if (toggle && one("[data-live]")) {
  toggle.hidden = false;
  say(false);
  toggle.addEventListener("click", switchLive);
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  addEventListener("pagehide", disconnect);
  connect();
}

// Keyboard.

let going = 0;

function move(step) {
  const rows = all("tr[data-row]");
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.hasAttribute("aria-selected"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  rows[at]?.removeAttribute("aria-selected");
  next.setAttribute("aria-selected", "true");
  next.scrollIntoView({ block: "nearest" });
}

// What is asked for with a key on the page of a timer is asked for with the same key where its row is chosen.
function act(name) {
  const row = one("tr[aria-selected][data-acts]");
  if (!row?.dataset.acts.split(" ").includes(name)) return;
  if (name === "edit") location.href = `${row.dataset.row}/edit`;
  else openDialog(`${row.dataset.row}/${name}`);
}

const keys = {
  "/": () => one("#filter, #search")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  x: () => { const box = one('tr[aria-selected] td.tick input'); if (box) { box.checked = !box.checked; countSelected(); } },
  Enter: () => { const row = one("tr[aria-selected]"); if (row) location.href = row.dataset.row; },
  e: () => act("edit"),
  c: () => act("cancel"),
  f: () => act("fire"),
  r: () => act("retry"),
  l: () => toggle && !toggle.hidden && switchLive(),
  z: () => one("#zone")?.click(),
  "?": () => one("#shortcuts")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (body.dataset.shortcuts === "off" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, dialog[open]")) {
    if (event.key === "Escape" && event.target.matches("#filter, #search")) event.target.blur();
    return;
  }
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  if (event.key === "g") {
    going = Date.now();
    return;
  }
  const isGoing = Date.now() - going < 1500;
  going = 0;
  const link = isGoing ? one(`[data-go="${CSS.escape(event.key)}"]`) : one(`[data-key="${CSS.escape(event.key)}"]`);
  if (link) {
    event.preventDefault();
    link.click();
  } else if (!isGoing && keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});

// The link that `timer dev` prints logs in once. Its token is in the fragment, which is sent to no server.

const login = one("#login");
const token = new URLSearchParams(location.hash.slice(1)).get("once");
if (login && token) {
  one("#once").value = token;
  history.replaceState(null, "", location.pathname + location.search);
  login.submit();
}

// The server does not know which zone is the local one.
if (zoned && one("#zone")) one("#zone").textContent = zone;

// The browser suggests the zones that it knows: a page would grow by the names of all of them.
all("[data-zones]").forEach((field) => {
  field.addEventListener("focus", () => {
    const list = document.createElement("datalist");
    list.id = "known-zones";
    for (const name of Intl.supportedValuesOf?.("timeZone") ?? []) list.append(new Option(name, name));
    field.after(list);
    field.setAttribute("list", list.id);
  }, { once: true });
});

// In a narrow window the list of pages is scrolled sideways.
one("nav.rail [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

showKinds();
enhance(document);
