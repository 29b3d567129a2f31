"""Template tag of words with an explanation."""

from typing import Any

from django import template
from django.template.defaultfilters import capfirst
from django.utils.html import format_html
from django.utils.safestring import SafeString

from facho.apps.inventory.glossary import GLOSSARY

register = template.Library()


@register.simple_tag(takes_context=True)
def term(context: Any, key: str, word: str = "") -> SafeString:
    """Show a word of the glossary, capitalised, with its explanation on hover, focus and touch.

    Not within a link, a button or a summary: it is a button itself.
    """
    # A page may have the same word twice. Included templates have contexts of their own, but the same request.
    request = context.request
    request.terms_shown = getattr(request, "terms_shown", 0) + 1
    known = GLOSSARY[key]
    return format_html(
        '<span class="term"><button type="button" class="term-word" aria-describedby="{0}">{1}</button>'
        '<span class="term-meaning" role="tooltip" id="{0}">{2}</span></span>',
        f"term-{key}-{request.terms_shown}",
        capfirst(word or known.word),
        known.meaning,
    )
