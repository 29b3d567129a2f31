"""The page of the glossary."""

from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import capfirst

from facho.apps.dashboard.views import page_for_all, show
from facho.apps.inventory.glossary import GLOSSARY


@page_for_all
def glossary(request: HttpRequest) -> HttpResponse:
    terms = [(key, capfirst(each.word), each.meaning) for key, each in GLOSSARY.items()]
    return show(
        request, "glossary.html", {"active": "glossary", "terms": sorted(terms, key=lambda each: each[1].casefold())}
    )
