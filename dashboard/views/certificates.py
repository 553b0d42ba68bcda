"""The certificate of a finished recovery: a page, a file, and a sheet of paper."""

from __future__ import annotations

import hashlib
import json
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard.views.errors import errors_shown
from recovery_api.domain.errors import NotFound
from recovery_api.domain.headroom.evidence import expired_says, is_expired, word_read
from recovery_api.models import Recovery
from recovery_api.retention_rows import keeping_says
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.recoveries import recovery_get
from recovery_api.selectors.retention import recovery_kept


@require_GET
@errors_shown
def certificate_show(request: HttpRequest, recovery_id: UUID) -> HttpResponse:
    recovery = _certified(recovery_id)
    certificate = recovery.certificate
    now, until = now_get(), recovery.certificate_evidence_until
    return render(
        request,
        "recoveries/certificate.html",
        {
            "recovery": recovery,
            "pipeline": recovery.pipeline,
            "certificate": certificate,
            "word": word_read(certificate["outcome"], until, now),
            "is_expired": is_expired(until, now),
            "expired_says": expired_says(until, certificate["says"]) if until else "",
            "verified": certificate.get("verified"),
            "is_void": recovery.certificate_void_since is not None,
            "is_intact": _digest(certificate) == recovery.certificate_digest,
            "parts": [(one.parts.piece.value, keeping_says(one, now)) for one in recovery_kept(recovery)],
        },
    )


@require_GET
@errors_shown
def certificate_json(request: HttpRequest, recovery_id: UUID) -> HttpResponse:
    """The certificate with its digest: SHA-256 of the member `certificate`, sorted, as json.dumps prints it."""
    recovery = _certified(recovery_id)
    void, until = recovery.certificate_void_since, recovery.certificate_evidence_until
    body = {
        "certificate": recovery.certificate,
        "digest": recovery.certificate_digest,
        "evidence_until": until and until.isoformat(),
        "is_expired": is_expired(until, now_get()),
        "void_since": void and void.isoformat(),
        "void_says": recovery.certificate_void_says,
    }
    response = HttpResponse(json.dumps(body, indent=2, ensure_ascii=False), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="certificate-{recovery.id}.json"'
    return response


def _certified(recovery_id: UUID) -> Recovery:
    """Raises: NotFound where it has no certificate yet."""
    recovery = recovery_get(recovery_id)
    if recovery.certificate is None:
        raise NotFound(f"A certificate of recovery {recovery_id}", "the control database", "It comes with the outcome.")
    return recovery


def _digest(certificate: object) -> str:
    return hashlib.sha256(json.dumps(certificate, sort_keys=True, default=str).encode()).hexdigest()
