"""Names that users give: one line of plain text."""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from facho.engine.escapes import CONTROL, escape


def validate_name(text: str) -> None:
    """Refuse control characters: they would break lines of logs, files and messages."""
    if found := CONTROL.search(text):
        message = _("Remove the control character %(character)s. A name is one line of plain text.")
        raise ValidationError(message, params={"character": escape(found[0])}, code="control_character")
