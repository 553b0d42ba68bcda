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
    window.Plotly.react(plot, figure.data, figure.layout, { displayModeBar: false, responsive: true, scrollZoom: false });
    var reset = document.querySelector('[data-reset="' + plot.dataset.figure + '"]');
    if (reset && reset.hidden) {
      reset.hidden = false;
      reset.addEventListener("click", function () { window.Plotly.relayout(plot, { "xaxis.autorange": true }); });
    }
  }
  function chartsDraw(root) { root.querySelectorAll("[data-figure]").forEach(chartDraw); }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () { chartsDraw(document); });

  /* What cannot be used as given is looked at first, wherever on the page it stands. */
  function wrongFieldShow() {
    var wrong = document.querySelector('[aria-invalid="true"]');
    if (!wrong) return;
    wrong.focus({ preventScroll: true });
    wrong.scrollIntoView({ block: "center" });
  }

  function begin() { copyButtonsShow(document); chartsDraw(document); wrongFieldShow(); }
  if (document.readyState === "complete") begin(); else window.addEventListener("load", begin);
  document.addEventListener("htmx:load", function (event) { copyButtonsShow(event.target); chartsDraw(event.target); });
})();
