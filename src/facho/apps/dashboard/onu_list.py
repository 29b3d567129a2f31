"""The list of ONUs, and its files."""

from typing import Any

from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.apps.dashboard import queries
from facho.apps.dashboard.files import file_of
from facho.apps.dashboard.list_pages import ListColumn, ListQuery, ListSpec, Page, page_number, page_of
from facho.apps.dashboard.views import page, show
from facho.apps.inventory.models import Tag
from facho.apps.inventory.scopes import restrict, visible_olts
from facho.apps.rest.export import label_of
from facho.apps.telemetry.columns import ONU_COLUMNS
from facho.apps.telemetry.filters import GROUP_CHOICES, OnuFilter
from facho.apps.telemetry.models import Onu, OnuQuerySet
from facho.apps.telemetry.search import matching

STATES = {**dict(GROUP_CHOICES), **dict(Onu.State.choices)}

# Spans of the menu; others can be written in the address.
WITHIN = ("1h", "6h", "24h", "7d", "30d")


def olt_name(value: str, request: Any) -> str:
    """Return the name of an OLT, if the user sees it."""
    olt = visible_olts(request.user).filter(pk=queries.number(value) or 0).only("name").first()
    return value if olt is None else olt.name


def _state_name(value: str, _request: Any) -> str:
    return str(STATES.get(value, value))


def _more(name: str, *, is_number: bool = False) -> ListColumn:
    """Return a column that is not shown at first."""
    return ListColumn(name, label_of(Onu, name), (name,), is_default=False, is_number=is_number)


ONUS = ListSpec(
    name="onus",
    filters=OnuFilter,
    columns=(
        ListColumn("name", _("ONU"), ("name",), in_files=("name", "serial")),
        ListColumn("state", _("State"), ("state",)),
        ListColumn("state_since", _("Since"), ("state_since",), is_number=True),
        ListColumn(
            "place",
            _("Place"),
            ("olt__name", "slot", "port", "onu"),
            is_path=True,
            in_files=("olt_name", "slot", "port", "onu"),
        ),
        ListColumn(
            "rx_dbm",
            _("Rx dBm"),
            ("rx_level", "rx_dbm"),
            is_number=True,
            in_files=("rx_dbm", "last_rx_dbm", "last_rx_at"),
        ),
        ListColumn("tx_dbm", _("Tx dBm"), ("tx_dbm",), is_number=True),
        ListColumn("olt_rx_dbm", _("OLT rx dBm"), ("olt_rx_dbm",), is_number=True),
        ListColumn(
            "distance_m",
            _("Distance"),
            ("distance_m",),
            is_number=True,
            in_files=("distance_m", "last_distance_m", "last_distance_at"),
        ),
        ListColumn("power_at", _("Power read"), ("power_at",), is_number=True),
        _more("serial"),
        _more("mac"),
        _more("description"),
        _more("model"),
        _more("software"),
        _more("line_profile"),
        _more("service_profile"),
        _more("admin_state"),
        _more("down_cause"),
        _more("last_up", is_number=True),
        _more("last_down", is_number=True),
        _more("temperature_c", is_number=True),
        _more("voltage_v", is_number=True),
        _more("in_octets", is_number=True),
        _more("out_octets", is_number=True),
        _more("missing_since", is_number=True),
        _more("moved_at", is_number=True),
        _more("first_seen_at", is_number=True),
        ListColumn("read_at", _("Last read"), ("read_at",), is_default=False, is_number=True),
        ListColumn("position", _("Position"), is_default=False, in_files=("latitude", "longitude")),
    ),
    sentences={
        "q": _("Search: %(value)s"),
        "olt": _("OLT: %(value)s"),
        "site": _("Site: %(value)s"),
        "tag": _("Tag: %(value)s"),
        "state": _("State: %(value)s"),
        "slot": _("Slot: %(value)s"),
        "port": _("Port: %(value)s"),
        "onu": _("ONU: %(value)s"),
        "id": _("Chosen ONUs: %(value)s"),
        "model": _("Model: %(value)s…"),
        "serial": _("Serial: %(value)s"),
        "rx_dbm__gt": _("Rx: more than %(value)s dBm"),
        "rx_dbm__gte": _("Rx: from %(value)s dBm"),
        "rx_dbm__lt": _("Rx: less than %(value)s dBm"),
        "rx_dbm__lte": _("Rx: up to %(value)s dBm"),
        "olt_rx_dbm__gt": _("OLT rx: more than %(value)s dBm"),
        "olt_rx_dbm__gte": _("OLT rx: from %(value)s dBm"),
        "olt_rx_dbm__lt": _("OLT rx: less than %(value)s dBm"),
        "olt_rx_dbm__lte": _("OLT rx: up to %(value)s dBm"),
        "distance_m__gte": _("Distance: from %(value)s m"),
        "distance_m__lte": _("Distance: up to %(value)s m"),
        "since_after": _("State since: from %(value)s"),
        "since_before": _("State since: before %(value)s"),
        "since_within": _("State since: the last %(value)s"),
        "missing_since__gt": _("Missing since: after %(value)s"),
        "missing_since__lt": _("Missing since: before %(value)s"),
        "moved_at__gt": _("Moved: after %(value)s"),
        "moved_at__lt": _("Moved: before %(value)s"),
        "read_at__gt": _("Last read: after %(value)s"),
        "read_at__lt": _("Last read: before %(value)s"),
        "has_power": _("With a known power: %(value)s"),
        "has_position": _("With a position: %(value)s"),
        "area": _("Area: %(value)s"),
        "is_missing": _("Missing: %(value)s"),
        "is_replaced": _("Replaced: %(value)s"),
    },
    words={"olt": olt_name, "state": _state_name},
    default_sort="place",
    has_choice=True,
    folded=(
        "rx_dbm__gte",
        "rx_dbm__lte",
        "olt_rx_dbm__gte",
        "olt_rx_dbm__lte",
        "distance_m__gte",
        "distance_m__lte",
        "since_within",
        "since_after",
        "since_before",
        "model",
        "slot",
    ),
)


# Filters and orders by the times of readings, which need the row of the port.
TIMES = {"read_at", "state_at", "power_at"}


def found(wanted: ListQuery, user: Any) -> QuerySet[Onu]:
    """Return the ONUs of a list that the user sees, in its order."""
    onus = wanted.narrowed(restrict(_timed(wanted, Onu.objects.all()), user))
    return matching(onus, wanted.text).order_by(*wanted.order_by)


def _timed(wanted: ListQuery, onus: OnuQuerySet) -> OnuQuerySet:
    """Add the times of readings if the list needs them."""
    used = {wanted.sort.removeprefix("-"), *(name.partition("__")[0] for name in wanted.query)}
    return onus.with_freshness() if used & TIMES else onus


def onu_page(wanted: ListQuery, onus: OnuQuerySet) -> Page:
    """Return a page of these ONUs, in the order of a list."""
    rows = _timed(wanted, onus).order_by(*wanted.order_by)
    return page_of(rows, page_number(wanted.request.GET.get("page")), _loaded)


def _loaded(ids: list[int]) -> list[Onu]:
    """Read the ONUs of a page, in the order of the ids."""
    onus = _table().in_bulk(ids)
    return [onus[pk] for pk in ids if pk in onus]


def _table() -> QuerySet[Onu]:
    position = {"latitude": F("position__latitude"), "longitude": F("position__longitude")}
    onus = Onu.objects.with_freshness().annotate(**position).select_related("olt", "replaced_by")
    return onus.only(*_READ).order_by()


# Columns that can be shown, and those of the first cell.
_READ = (
    *(field.name for field in Onu._meta.concrete_fields if field.name not in ("extra", "olt", "replaced_by")),
    "olt__name", "replaced_by__name", "replaced_by__serial", "replaced_by__index",
)  # fmt: skip


@page("telemetry.view_onu")
def onus(request: HttpRequest) -> HttpResponse:
    wanted = ListQuery(request, ONUS)
    rows = found(wanted, request.user)
    olts = visible_olts(request.user).select_related("site").only("name", "site__name")
    seen = {each.pk for each in olts}
    olt_id = queries.number(wanted.query.get("olt"))
    context = {
        "active": "onus",
        "page": page_of(rows, page_number(request.GET.get("page")), _loaded),
        "olts": olts,
        "olt_id": olt_id if olt_id in seen else None,
        "sites": sorted({each.site.name for each in olts if each.site}),
        "tags": Tag.objects.filter(olts__in=seen).distinct().values_list("name", flat=True),
        "ports": queries.used_ports(olt_id) if olt_id in seen else [],
        "states": Onu.State.choices,
        "groups": GROUP_CHOICES,
        "chosen_states": wanted.query.getlist("state"),
        "within": WITHIN,
    }
    return show(request, "onus.html", {**context, **wanted.context()})


@page("telemetry.view_onu")
def onus_file(request: HttpRequest, file_format: str) -> HttpResponseBase:
    """Return the list as a file: the same rows, columns and order."""
    wanted = ListQuery(request, ONUS)
    rows = found(wanted, request.user)
    return file_of(wanted, rows, _table().annotate(olt_name=F("olt__name")), ONU_COLUMNS, gettext("ONUs"), file_format)
