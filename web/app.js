"use strict";

const element = (id) => document.getElementById(id);
const state = { messages: [], document: null, documents: [], abort: null };

function headers() {
  const key = element("key").value;
  const out = { "Content-Type": "application/json" };
  if (key) out.Authorization = "Bearer " + key;
  return out;
}

async function call(path, options = {}) {
  const response = await fetch(path, { headers: headers(), ...options });
  if (!response.ok) {
    const body = await response.json().catch(() => null);
    throw new Error(body?.error?.message ?? `the server answered ${response.status}`);
  }
  return response;
}

/** The values of a stream of server-sent events. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    for (let end = held.indexOf("\n\n"); end >= 0; end = held.indexOf("\n\n")) {
      const data = held.slice(0, end).replace(/^data: /, "");
      held = held.slice(end + 2);
      if (data === "[DONE]") return;
      const parsed = JSON.parse(data);
      if (parsed.error) throw new Error(parsed.error.message);
      yield parsed;
    }
  }
}

function megabytes(bytes) {
  return (bytes / 1048576).toFixed(1) + " MiB";
}

function make(tag, properties = {}, ...children) {
  const out = Object.assign(document.createElement(tag), properties);
  out.append(...children);
  return out;
}

function remember() {
  try {
    const { messages, document: chosen } = state;
    sessionStorage.setItem("razorkv", JSON.stringify({ messages, document: chosen }));
  } catch {
    // A page without storage only forgets at reload.
  }
}

function showMessages() {
  const list = element("messages");
  list.replaceChildren();
  state.messages.forEach((message, index) => {
    const item = make("li", { className: message.role });
    if (message.role === "user") {
      const edit = make("button", { type: "button", className: "edit small", textContent: "Edit" });
      edit.addEventListener("click", () => editMessage(index));
      item.append(edit);
    }
    item.append(make("span", { className: "text", textContent: message.content }));
    list.append(item);
  });
  list.scrollTop = list.scrollHeight;
  element("again").disabled = state.abort !== null || !state.messages.some((m) => m.role === "user");
}

function editMessage(index) {
  if (state.abort) return;
  element("question").value = state.messages[index].content;
  state.messages.length = index;
  remember();
  showMessages();
  element("question").focus();
}

function showMeter(kv) {
  const share = kv.uncompressed_bytes > 0 ? kv.row_bytes / kv.uncompressed_bytes : 0;
  element("kv-bar").style.width = Math.min(100, share * 100).toFixed(1) + "%";
  element("kv-text").textContent =
    `KV cache ${megabytes(kv.row_bytes)} of ${megabytes(kv.uncompressed_bytes)} (${kv.tokens} tokens, ` +
    `${kv.compressed ? "compressed" : "not compressed"})`;
}

function busy(abort) {
  state.abort = abort;
  element("send").disabled = abort !== null;
  element("stop").disabled = abort === null;
  showMessages();
}

function requestBody() {
  const messages = [...state.messages];
  const system = element("system").value.trim();
  const body = { messages, stream: true, stream_options: { include_usage: true } };
  if (state.document) {
    body.document = state.document;
  } else if (system) {
    messages.unshift({ role: "system", content: system });
  }
  body.temperature = Number(element("temperature").value);
  body.max_tokens = Number(element("max-tokens").value);
  if (element("seed").value !== "") body.seed = Number(element("seed").value);
  return JSON.stringify(body);
}

/** Asks for an answer to the conversation and shows it while it comes. */
async function answer() {
  const abort = new AbortController();
  const body = requestBody();
  const message = { role: "assistant", content: "" };
  const status = element("status");
  state.messages.push(message);
  busy(abort);
  const shown = element("messages").lastElementChild.querySelector(".text");
  status.textContent = "reading…";
  try {
    const response = await call("v1/chat/completions", { method: "POST", body, signal: abort.signal });
    for await (const event of events(response)) {
      message.content += event.choices[0]?.delta?.content ?? "";
      shown.textContent = message.content;
      element("messages").scrollTop = element("messages").scrollHeight;
      if (!event.timings) continue;
      const { timings } = event;
      status.textContent =
        `${timings.cache_n} tokens reused, ${timings.prompt_n} read, ${timings.predicted_n} generated at ` +
        `${timings.predicted_per_second.toFixed(1)} tokens/s`;
      showMeter(event.kv);
    }
  } catch (error) {
    status.textContent = abort.signal.aborted ? "stopped" : error.message;
  }
  if (message.content === "") state.messages = state.messages.filter((m) => m !== message);
  remember();
  busy(null);
  element("question").focus();
}

function send(event) {
  event.preventDefault();
  const text = element("question").value;
  if (state.abort || text.trim() === "") return;
  element("question").value = "";
  state.messages.push({ role: "user", content: text });
  remember();
  answer();
}

function regenerate() {
  if (state.abort) return;
  while (state.messages.length > 0 && state.messages.at(-1).role === "assistant") state.messages.pop();
  if (state.messages.length > 0) answer();
}

function clearChat() {
  state.abort?.abort();
  state.messages = [];
  remember();
  showMessages();
  element("status").textContent = "";
  element("question").focus();
}

function choose(id) {
  state.document = state.document === id ? null : id;
  clearChat();
  showDocuments();
}

function showDocuments() {
  const list = element("documents");
  list.replaceChildren();
  if (!state.documents.some((one) => one.id === state.document)) state.document = null;
  for (const one of state.documents) {
    const chosen = one.id === state.document;
    const ask = make("button", { type: "button", className: "small", textContent: chosen ? "Leave" : "Ask" });
    ask.setAttribute("aria-pressed", String(chosen));
    ask.addEventListener("click", () => choose(one.id));
    const drop = make("button", { type: "button", className: "small", textContent: "Delete" });
    drop.addEventListener("click", () => removeDocument(one.id));
    const size = `${one.tokens} tokens, ${megabytes(one.kv_bytes)} of ${megabytes(one.uncompressed_bytes)}` +
      (one.saved ? ", saved" : "");
    list.append(make("li", { className: chosen ? "chosen" : "" }, one.name || one.id,
      make("small", { textContent: size }), ask, " ", drop));
  }
  const about = element("about-document");
  const current = state.documents.find((one) => one.id === state.document);
  about.hidden = !current;
  if (current) about.textContent = `Questions about: ${current.name || current.id}`;
}

async function loadDocuments() {
  state.documents = (await (await call("v1/documents")).json()).data;
  showDocuments();
}

async function removeDocument(id) {
  try {
    await call("v1/documents/" + id, { method: "DELETE" });
    await loadDocuments();
  } catch (error) {
    element("reading-text").textContent = error.message;
  }
}

async function upload(file) {
  const bar = element("reading");
  const text = element("reading-text");
  bar.hidden = false;
  bar.removeAttribute("value");
  text.textContent = `reading ${file.name}…`;
  try {
    const body = JSON.stringify({ name: file.name, text: await file.text(), stream: true });
    for await (const event of events(await call("v1/documents", { method: "POST", body }))) {
      if (event.object === "document") {
        text.textContent = `${file.name}: ${event.tokens} tokens read`;
        await loadDocuments();
        if (state.document !== event.id) choose(event.id);
      } else {
        bar.value = event.done / event.total;
        text.textContent = `${file.name}: ${event.done} of ${event.total} tokens`;
      }
    }
  } catch (error) {
    text.textContent = `${file.name}: ${error.message}`;
  }
  bar.hidden = true;
}

function showHeads(rows) {
  const canvas = element("heads");
  const cell = 10;
  canvas.width = rows.length * cell;
  canvas.height = Math.max(...rows.map((row) => row.length)) * cell;
  const paint = canvas.getContext("2d");
  let whole = 0;
  rows.forEach((row, layer) => row.forEach((keeps, head) => {
    whole += keeps;
    paint.fillStyle = keeps ? "#d9822b" : "#7f9bb8";
    paint.fillRect(layer * cell, head * cell, cell - 1, cell - 1);
  }));
  canvas.setAttribute("aria-label", `KV heads, layers from left to right: ${whole} keep everything`);
}

async function connect() {
  const model = element("model");
  try {
    const props = await (await call("props")).json();
    model.textContent = `${props.model} — ${props.n_ctx} tokens of context, ${props.total_slots} slots`;
    element("policy").textContent = props.policy.description;
    showHeads(props.policy.heads);
    await loadDocuments();
  } catch (error) {
    model.textContent = error.message;
    if (/loaded/.test(error.message)) setTimeout(connect, 1000);
  }
}

function restore() {
  try {
    const kept = JSON.parse(sessionStorage.getItem("razorkv"));
    if (kept) Object.assign(state, kept);
    element("key").value = sessionStorage.getItem("razorkv-key") ?? "";
  } catch {
    // Nothing that can be read: a new conversation.
  }
}

element("ask").addEventListener("submit", send);
element("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
});
element("stop").addEventListener("click", () => state.abort?.abort());
element("again").addEventListener("click", regenerate);
element("clear").addEventListener("click", clearChat);
element("file").addEventListener("change", (event) => {
  if (event.target.files[0]) upload(event.target.files[0]);
  event.target.value = "";
});
element("key").addEventListener("change", () => {
  try {
    sessionStorage.setItem("razorkv-key", element("key").value);
  } catch {
    // The key is then asked for again after a reload.
  }
  connect();
});
const drop = element("drop");
for (const kind of ["dragenter", "dragover"]) {
  drop.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
}
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") state.abort?.abort();
});
restore();
showMessages();
connect();
