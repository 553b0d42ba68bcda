"""The addresses of pages, REST and the administration of tables."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from dashboard.routes import fleet, incident, on_call, registry
from dashboard.views import sign_in

urlpatterns = [
    path("", include(fleet)),
    path("", include(registry)),
    path("", include(incident)),
    path("", include(on_call)),
    path("admin/login/", sign_in.sign_in_elsewhere, name="admin-sign-in"),
    path("admin/password_change/", RedirectView.as_view(pattern_name="password"), name="admin-password"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("recovery_api.urls")),
]
