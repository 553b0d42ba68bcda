// Draws the OpenAPI document. Requests go out with the token that was entered, or with the session and its CSRF token.
(function () {
  "use strict";
  const place = document.getElementById("try-it");

  function cookie(name) {
    const found = document.cookie.split("; ").find(function (one) { return one.startsWith(name + "="); });
    return found ? decodeURIComponent(found.slice(name.length + 1)) : "";
  }

  window.SwaggerUIBundle({
    url: place.dataset.document,
    domNode: place,
    deepLinking: true,
    docExpansion: "list",
    filter: true,
    persistAuthorization: false,
    validatorUrl: null,
    requestInterceptor: function (request) {
      if (new URL(request.url, window.location.href).origin === window.location.origin) {
        request.headers["X-CSRFToken"] = cookie("csrftoken");
      }
      return request;
    },
  });
})();
