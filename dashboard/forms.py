"""Forms made from declared options: a kind's, a pipeline's. What is not said here is parsed where commands parse it.

A field left empty is an option left out, so that its default stays the kind's. Errors of the strict parser are shown
at the field they name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from dashboard.form_sections import Section, sections_of
from dashboard.views.errors import said
from recovery_api.domain.errors import BadInput, FencepostError, UnknownOption
from recovery_api.domain.kinds.base import Option

EXAMPLES = {
    "reference": "The credential itself is never stored.",
    "names": "Several are separated by commas.",
    "columns": "One a line, name=column.",
}
LONGEST = 4000


class OptionsForm(forms.Form):
    """A form with one field an option, in their order. `given_options` is what the parser takes.

    `asked_first`: fields that are asked in the first section, whatever they are about.
    """

    asked_first: tuple[str, ...] = ()

    def __init__(self, *args: Any, options: Iterable[Option], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.declared = tuple(options)
        for option in self.declared:
            self.fields[_field(option)] = field_of(option)

    def given_options(self) -> dict[str, Any]:
        """The options that were filled in."""
        found: dict[str, Any] = {}
        for option in self.declared:
            value = self.cleaned_data.get(_field(option))
            if value in (None, ""):
                continue
            if option.type == "columns":
                found[option.name] = columns_read(value, option)
            elif option.type == "names":
                found[option.name] = [name.strip() for name in value.split(",")]
            else:
                found[option.name] = value
        return found

    @property
    def sections(self) -> list[Section]:
        """What is asked, section by section."""
        return sections_of(self.visible_fields(), self.asked_first)

    def error_place(self, error: FencepostError) -> None:
        """Shows an error of the parser at the field it names, else above the form."""
        name = str(error.args[0]).rpartition(".")[2] if isinstance(error, BadInput) and error.args else ""
        text = str(error) if isinstance(error, UnknownOption) else said(error)
        place = f"option_{name}" if f"option_{name}" in self.fields else (name if name in self.fields else None)
        self.add_error(place, text if place else str(error))


class EndForm(OptionsForm):
    """A source or a sink: its name and its options."""

    name = forms.CharField(max_length=200, help_text="What people call it. 1 to 200 characters, no slash, comma or =.")

    def __init__(self, *args: Any, has_name: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not has_name:
            del self.fields["name"]


class PipelineForm(OptionsForm):
    """A pipeline: its ends, the keys it owes, who may approve, and its options. Name, source and sink of a new one only."""

    name = forms.CharField(max_length=200, help_text="What people call it. 1 to 200 characters, no slash, comma or =.")
    source = forms.ChoiceField(help_text="The authority of the committed history.")
    sink = forms.ChoiceField(
        help_text="The record: what was accepted is read there. A sink serves one pipeline; those that serve one already are not offered."
    )
    delivery = forms.ChoiceField(
        required=False,
        label="Delivered through",
        help_text="Another sink, where events are sent to one place and what was accepted is read from another. Left out: the "
        "record itself. Only sinks that can be sent to are offered.",
    )
    scope_kind = forms.ChoiceField(
        label="Scope",
        choices=[("every", "every key"), ("some", "only these keys")],
        initial="every",
        help_text="The keys this pipeline owes.",
    )
    scope = forms.CharField(
        label="Keys",
        required=False,
        max_length=1_000_000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="One a line, exactly as the source spells them. Only where the scope is not every key.",
    )
    author_may_approve = forms.BooleanField(
        required=False, help_text="Leave it out and a plan is approved by another person than its author."
    )

    def __init__(
        self,
        *args: Any,
        sources: Iterable[str] = (),
        sinks: Iterable[str] = (),
        deliveries: Iterable[str] = (),
        is_new: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        _choices(self.fields["delivery"], deliveries, "the record itself")
        if is_new:
            _choices(self.fields["source"], sources)
            _choices(self.fields["sink"], sinks)
        else:
            for name in ("name", "source", "sink"):
                del self.fields[name]
            self.order_fields(("scope_kind", "scope", "author_may_approve", "delivery"))
            self.asked_first = ("delivery",)  # the one end that can be changed

    def keys(self) -> list[str] | None:
        """The scope: None for every key. An empty list is passed on, and refused where it is kept."""
        if self.cleaned_data["scope_kind"] == "every":
            return None
        return [key for key in self.cleaned_data["scope"].splitlines() if key]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("scope_kind") == "every" and (cleaned.get("scope") or "").strip():
            self.add_error("scope", "Keys are given and the scope is every key: choose one of the two.")
        return cleaned


class InstallForm(forms.Form):
    """As whom the kit is installed, and whose logins become relay, recoverer and auditor."""

    connection = forms.RegexField(
        regex=r"(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)",
        max_length=1000,
        required=False,
        label="Connection of whoever may install",
        help_text="env:FENCEPOST_END_NAME or file:/path. Left out: the sink's own connection.",
        error_messages={
            "invalid": "Write env:FENCEPOST_END_NAME or file:/path; the credential itself is never stored."
        },
    )
    relay = forms.CharField(max_length=63, required=False, label="Relay's login", help_text="May deliver.")
    recoverer = forms.CharField(
        max_length=63, required=False, label="Recoverer's login", help_text="May claim, arm and fire: Fencepost's own."
    )
    auditor = forms.CharField(max_length=63, required=False, label="Auditor's login", help_text="May only read.")

    def grants(self) -> dict[str, str]:
        return {
            trade: self.cleaned_data[trade] for trade in ("relay", "recoverer", "auditor") if self.cleaned_data[trade]
        }


def field_of(option: Option) -> forms.Field:
    """The field for one option; its help says what the option means and what it is when left out."""
    says = " ".join(part for part in (option.says, EXAMPLES.get(option.type, ""), _default_says(option)) if part)
    given: dict[str, Any] = {"required": option.is_required, "help_text": says, "label": option.name.replace("_", " ")}
    if option.type == "integer":
        field: forms.Field = forms.CharField(**given, max_length=20)
        field.widget.attrs |= {"inputmode": "numeric"}
    elif option.type == "boolean":
        field = forms.ChoiceField(**given, choices=[("", "not said"), ("true", "yes"), ("false", "no")])
    elif option.type == "choice":
        field = forms.ChoiceField(**given, choices=[("", "not said"), *((one, one) for one in option.choices)])
    elif option.type == "columns":
        field = forms.CharField(**given, max_length=LONGEST, widget=forms.Textarea(attrs={"rows": 3}))
    else:
        field = forms.CharField(**given, max_length=LONGEST)
    field.widget.attrs |= {"autocomplete": "off"} | ({"spellcheck": "false"} if option.type != "choice" else {})
    return field


def initial_of(options: Mapping[str, Any], declared: Iterable[Option]) -> dict[str, Any]:
    """The kept options as the form's fields show them."""
    return {_field(option): shown(options[option.name]) for option in declared if option.name in options}


def options_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as a person reads them, by name."""
    return {name.replace("_", " "): shown(value) for name, value in options.items()}


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "\n".join(f"{name}={column}" for name, column in value.items())
    return ",".join(value) if isinstance(value, list | tuple) else str(value)


def columns_read(text: str, option: Option) -> dict[str, str]:
    """Raises: BadInput for a line that is no pair, or a name given twice."""
    found: dict[str, str] = {}
    for line in re.split(r"[\r\n]+", text.strip()):
        name, is_pair, column = (part.strip() for part in line.partition("="))
        if not is_pair or not name or not column:
            raise BadInput(f"option.{option.name}", f"{line!r} is not name=column", option.says)
        if name in found:
            raise BadInput(f"option.{option.name}", f"{name!r} is given twice", option.says)
        found[name] = column
    return found


def _field(option: Option) -> str:
    return f"option_{option.name}"


def _default_says(option: Option) -> str:
    if option.is_required or option.default is None:
        return ""
    return f"When left out: {shown(option.default)}."


def _choices(field: forms.Field, names: Iterable[str], none: str = "choose one") -> None:
    assert isinstance(field, forms.ChoiceField)
    field.choices = [("", none), *((name, name) for name in names)]
