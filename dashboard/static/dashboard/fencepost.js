/* Copy buttons, one click for one post, and charts. Everything else works without. */
(function () {
  "use strict";

  /* Copy: shown only where the browser can. */
  function copyButtonsShow(root) {
    if (!navigator.clipboard) return;
    root.querySelectorAll("button.copy[hidden]").forEach(function (button) { button.hidden = false; });
  }
  document.addEventListener("click", function (event) {
    var button = event.target.closest("button.copy");
    if (!button) return;
    navigator.clipboard.writeText(button.dataset.copy).then(function () {
      button.textContent = "copied";
      window.setTimeout(function () { button.textContent = "copy"; }, 1500);
    }, function () { button.textContent = "select it by hand"; });
  });

  /* A coordinate is copied by a click on it, and said to be; by hand, one click selects all of it. */
  document.addEventListener("click", function (event) {
    var code = event.target.closest("code[data-copy]");
    if (code && navigator.clipboard) codeCopy(code, function () { /* it is selected: copy it by hand */ });
  });
  function codeCopy(code, otherwise) {
    var text = code.dataset.copy || code.textContent.trim();
    if (!navigator.clipboard) { otherwise(); return; }
    navigator.clipboard.writeText(text).then(function () {
      code.classList.add("copied");
      said("Copied " + text);
      window.setTimeout(function () { code.classList.remove("copied"); }, 1500);
    }, otherwise);
  }
  /* The same by a key: the one at the focus or in its row, then one after the other. None is a stop of Tab for that. */
  var lastByKey = null;
  document.addEventListener("focusin", function () { lastByKey = null; });
  function codeNext() {
    var codes = Array.prototype.filter.call(
      document.querySelectorAll("main code.coordinate[data-copy], main a > code.coordinate"),
      function (code) { return code.getClientRects().length > 0; }
    );
    var focus = document.activeElement, row = focus.closest("tr, li, dd, p");
    var was = codes.indexOf(lastByKey);
    var here = row ? codes.findIndex(function (code) { return row.contains(code); }) : -1;
    var after = codes.findIndex(function (code) { return focus.compareDocumentPosition(code) & Node.DOCUMENT_POSITION_FOLLOWING; });
    return codes[was >= 0 ? was + 1 : here >= 0 ? here : after] || codes[0];
  }
  function codeStop(code) { return code.closest("a") || code; }
  function codeCopyByKey() {
    var code = codeNext();
    if (!code) { said("There is no coordinate on this page."); return; }
    if (codeStop(code) === code) code.setAttribute("tabindex", "-1");
    codeStop(code).focus();
    lastByKey = code;
    codeCopy(code, function () {
      window.getSelection().selectAllChildren(code);
      said("Selected " + code.textContent.trim() + ". Copy it as you copy any text.");
    });
  }
  function said(text) {
    var region = document.getElementById("said");
    if (region) region.textContent = text;
  }

  /* Where a form was sent from is where its page is gone on with, when the answer is that page again. */
  document.addEventListener("submit", function (event) {
    var form = event.target, section = form.closest("[aria-labelledby]");
    if (form.method !== "post" || !section) return;
    var place = { path: window.location.pathname, id: section.getAttribute("aria-labelledby"), at: Date.now() };
    try { window.sessionStorage.setItem("fencepost-work", JSON.stringify(place)); } catch (error) { /* then the page begins at its top */ }
  });
  function workGoOn() {
    var place = null;
    try {
      place = JSON.parse(window.sessionStorage.getItem("fencepost-work"));
      window.sessionStorage.removeItem("fencepost-work");
    } catch (error) { return; }
    if (!place || place.path !== window.location.pathname || Date.now() - place.at > 60000) return;
    var heading = document.getElementById(window.location.hash.slice(1) || place.id);
    if (!heading || document.querySelector('[aria-invalid="true"]')) return;
    if (!heading.hasAttribute("tabindex")) heading.setAttribute("tabindex", "-1");
    heading.focus();
  }

  /* A form marked data-once is sent once; coming back by the browser's history makes it usable again. */
  document.addEventListener("submit", function (event) {
    var form = event.target;
    if (!form.hasAttribute("data-once")) return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    form.querySelectorAll("button[type=submit]").forEach(function (button) { button.setAttribute("aria-disabled", "true"); });
  });
  window.addEventListener("pageshow", function () {
    document.querySelectorAll("form[data-sent]").forEach(function (form) {
      delete form.dataset.sent;
      form.querySelectorAll("button[aria-disabled]").forEach(function (button) { button.removeAttribute("aria-disabled"); });
    });
  });

  /* A form marked data-submit-on-change is sent when a choice changes; its button stays for everybody else. */
  document.addEventListener("change", function (event) {
    var form = event.target.form;
    if (form && form.hasAttribute("data-submit-on-change")) form.requestSubmit();
  });

  /* Charts: a figure made by the server, coloured by this page's own properties. */
  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }
  function coloured(value) {
    if (typeof value === "string" && value.indexOf("var(--") === 0) return colour(value.slice(6, -1));
    if (Array.isArray(value)) return value.map(coloured);
    if (value && typeof value === "object") {
      var found = {};
      Object.keys(value).forEach(function (key) { found[key] = coloured(value[key]); });
      return found;
    }
    return value;
  }
  function chartDraw(plot) {
    var source = document.getElementById(plot.dataset.figure);
    if (!source || !window.Plotly) return;
    var figure = coloured(JSON.parse(source.textContent));
    plot.style.height = figure.layout.height + "px"; // a chart that follows its window's width takes its box's height, and has none of its own
    window.Plotly.react(plot, figure.data, figure.layout, { displayModeBar: false, responsive: true, scrollZoom: false });
    var reset = document.querySelector('[data-reset="' + plot.dataset.figure + '"]');
    if (reset && reset.hidden) {
      reset.hidden = false;
      reset.addEventListener("click", function () { window.Plotly.relayout(plot, { "xaxis.autorange": true }); });
    }
  }
  function chartsDraw(root) { root.querySelectorAll("[data-figure]").forEach(chartDraw); }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () { chartsDraw(document); });

  /* Single keys: never while somebody types, never with a modifier, and not at all where they were turned off. */
  var GO = { p: "/", i: "/incidents/", r: "/runbooks/", t: "/timeline/", w: "/work/" };
  var wentAt = 0;
  function keysAreOff() {
    try { return window.localStorage.getItem("fencepost-keys") === "off"; } catch (error) { return false; }
  }
  function keysShow() {
    var dialog = document.getElementById("keys");
    dialog.querySelector("[data-keys-off]").checked = keysAreOff();
    if (!dialog.open) dialog.showModal();
  }
  document.addEventListener("keydown", function (event) {
    var dialog = document.getElementById("keys");
    if (!dialog || dialog.open || keysAreOff() || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (event.target.closest("input, select, textarea, [contenteditable]")) return;
    var went = event.timeStamp - wentAt < 1500;
    wentAt = event.key === "g" ? event.timeStamp : 0;
    if (went && GO[event.key]) { window.location.assign(GO[event.key]); return; }
    if (event.key === "?") { event.preventDefault(); keysShow(); }
    if (event.key === "c") codeCopyByKey();
    if (event.key === "/") {
      var search = document.querySelector("input[type=search]");
      event.preventDefault();
      if (search) search.focus(); else window.location.assign("/#q");
    }
  });
  document.addEventListener("change", function (event) {
    if (!event.target.matches("[data-keys-off]")) return;
    try { window.localStorage.setItem("fencepost-keys", event.target.checked ? "off" : "on"); } catch (error) { /* it lasts for this page */ }
  });
  document.addEventListener("click", function (event) { if (event.target.closest("[data-keys-show]")) keysShow(); });
  function keysBegin() {
    document.querySelectorAll("[data-keys-show]").forEach(function (button) { button.hidden = false; });
    if (window.location.hash === "#q" && document.getElementById("q")) document.getElementById("q").focus();
  }

  /* What cannot be used as given is looked at first, wherever on the page it stands. */
  function wrongFieldShow() {
    var wrong = document.querySelector('[aria-invalid="true"]');
    if (!wrong) return;
    wrong.focus({ preventScroll: true });
    wrong.scrollIntoView({ block: "center" });
  }

  function begin() { keysBegin(); copyButtonsShow(document); chartsDraw(document); wrongFieldShow(); workGoOn(); }
  if (document.readyState === "complete") begin(); else window.addEventListener("load", begin);
  document.addEventListener("htmx:load", function (event) { copyButtonsShow(event.target); chartsDraw(event.target); });
})();
