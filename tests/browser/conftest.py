"""A real browser, a real web server, real ends, and a worker in a thread that can be held."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import override_settings
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from recovery_api.domain.access import Role
from recovery_api.models import Intent, IntentState
from tests.integration.recovery.world import World, world_make
from tests.programs import program_missing
from workers.runners import intent_run

PASSWORD = "not for production"
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
INSTALL = "no Chromium: apt install chromium (or put a `chromium` on PATH), then run this again"
WAIT_MS = 120_000
"""The longest a browser waits for a page: a busy machine is not a failure."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        program_missing(INSTALL)
    # Playwright's loop runs in this thread, and Django takes it for an asynchronous caller.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def server(django_db_setup: None) -> Iterator[LiveServer]:
    """The web server of these tests. It speaks HTTP: its middleware reads that once, when it starts."""
    plain = {"SECURE_SSL_REDIRECT": False, "SESSION_COOKIE_SECURE": False, "CSRF_COOKIE_SECURE": False}
    with override_settings(**plain):
        running = LiveServer("localhost")
        yield running
        running.stop()


@pytest.fixture(autouse=True)
def _settings(settings: Any, tmp_path: Path) -> None:
    settings.REDIS_URL = ""
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path / "evidence"


class Worker:
    """Takes what is queued, one after another, until it is stopped. While held it takes nothing."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._free = threading.Event()
        self._free.set()
        self._thread = threading.Thread(target=self._work, name="browser-worker", daemon=True)

    def hold(self) -> None:
        self._free.clear()

    def free(self) -> None:
        self._free.set()

    def __enter__(self) -> Worker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._free.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                self._free.wait()
                queued = Intent.objects.filter(state=IntentState.QUEUED).order_by("created_at").first()
                if queued is None:
                    self._stop.wait(0.1)
                    continue
                intent_run(str(queued.id), "browser-worker")
        finally:
            connection.close()


@pytest.fixture
def people(transactional_db: None) -> None:
    """One person for each role, named like it; `ada` and `grace` both approve."""
    for name in (*(role.value for role in Role), "ada", "grace"):
        role = name if name in [one.value for one in Role] else Role.APPROVER.value
        User.objects.create_user(name, password=PASSWORD).groups.add(Group.objects.get_or_create(name=role)[0])


@pytest.fixture
def world(people: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """A pipeline that owes twelve events in two ranges; its plan's author may approve."""
    made = world_make(database_factory, tmp_path, target=True)
    made.pipeline.requires_other_approver = False
    made.pipeline.save()
    keys = [f"k{number}" for number in range(14)]
    made.commit(keys)
    made.deliver(["k4", "k9"])
    made.until_safe()
    return made


@pytest.fixture
def worker(world: World) -> Iterator[Worker]:
    with Worker() as running:
        yield running


@pytest.fixture
def open_page(chromium: Browser, server: LiveServer, transactional_db: None) -> Iterator[Callable[..., Page]]:
    """`open_page("ada")`: a page signed in as ada, in a browser profile of its own. `""`: nobody is signed in."""
    contexts: list[BrowserContext] = []

    def make(name: str = "", **options: Any) -> Page:
        context = chromium.new_context(base_url=server.url, **options)
        contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        page.problems = []  # type: ignore[attr-defined]
        page.on("pageerror", lambda error: page.problems.append(str(error)))  # type: ignore[attr-defined]
        page.on("console", lambda said: page.problems.append(said.text) if said.type == "error" else None)  # type: ignore[attr-defined]
        if name:
            sign_in(page, name)
        return page

    yield make
    for context in contexts:
        context.close()


def sign_in(page: Page, name: str) -> None:
    page.goto("/sign-in/")
    page.fill("#id_username", name)
    page.fill("#id_password", PASSWORD)
    page.locator("main button[type=submit]").click()
    page.wait_for_url(lambda url: "/sign-in/" not in url)


def axe_violations(page: Page) -> list[str]:
    """What axe-core finds on the page, each as a rule and the elements it is about. Empty: nothing.

    Evaluated by the browser's debugger, which the page's own Content-Security-Policy does not reach.
    """
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [f"{one['id']}: {[node['html'][:160] for node in one['nodes']]}" for one in found["violations"]]
