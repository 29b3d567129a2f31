"""Parts of every list page: filters of the address, removable one by one, order, columns, saved views and pages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.db.models import F, QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from facho.apps.dashboard.models import SavedView, kept_query
from facho.apps.rest.filters import FilterSet, search_problem

# Rows that a list counts and pages through. Counting a million for each page would take longer than showing it.
MOST = 10_000
ROWS_PER_PAGE = 50

# Value of `view` for a list without a view, although the user has a default.
NO_VIEW = "none"

# Parameters of every list besides its filters.
OWN = ("q", "sort", "columns", "page", "view")


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A column of a page: lookups or a key to order by, and its columns in a file."""

    name: str
    label: Any
    order: tuple[str, ...] = ()
    is_default: bool = True
    # Aligned to the right.
    is_number: bool = False
    # A place has an index, which can be read backwards: rows without a value are first then.
    is_path: bool = False
    in_files: tuple[str, ...] = ()

    @property
    def file_columns(self) -> tuple[str, ...]:
        return self.in_files or (self.name,)


@dataclass(frozen=True, slots=True)
class ListSpec:
    """A list page: its filters, its columns, and the sentences of its filters."""

    name: str
    filters: type[FilterSet]
    columns: tuple[ListColumn, ...]
    # By parameter: a sentence with %(value)s, and the words of values.
    sentences: Mapping[str, Any]
    words: Mapping[str, Callable[[str, Any], str]] = field(default_factory=dict)
    default_sort: str = ""
    has_choice: bool = False
    more: tuple[str, ...] = ()
    # Filters that the form shows when they are used, or asked for.
    folded: tuple[str, ...] = ()

    @property
    def parameters(self) -> list[str]:
        own = [name for name in OWN if name != "columns" or self.has_choice]
        return [*self.filters.base_filters, *own, *self.more]

    def column(self, name: str) -> ListColumn | None:
        return next((each for each in self.columns if each.name == name), None)


def cleaned(text: str) -> QueryDict:
    """Return a query without empty values."""
    return QueryDict(kept_query(text), mutable=True)


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter in words, and the address of the list without it."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a column; empty `href`: the list cannot be ordered by it."""

    column: ListColumn
    href: str
    direction: str


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a list that is counted up to `MOST`. It has the names of a page of Django's paginator."""

    object_list: Sequence[Any]
    number: int
    # Rows that are known to exist, and whether there are no others; None: nothing is known of them.
    count: int
    is_counted: bool | None

    @property
    def start_index(self) -> int:
        return (self.number - 1) * ROWS_PER_PAGE + 1

    @property
    def end_index(self) -> int:
        return self.start_index + len(self.object_list) - 1

    @property
    def has_previous(self) -> bool:
        return self.number > 1

    @property
    def has_next(self) -> bool:
        return self.end_index < self.count

    @property
    def previous_page_number(self) -> int:
        return self.number - 1

    @property
    def next_page_number(self) -> int:
        return self.number + 1


def page_number(text: str | None) -> int:
    """Return the number of a page; the first one if it is invalid, the last one if it is too large."""
    is_number = bool(text) and str(text).isascii() and str(text).isdecimal() and len(str(text)) < 10
    return min(max(int(text or 1), 1), MOST // ROWS_PER_PAGE) if is_number else 1


def page_of(rows: QuerySet[Any], number: int, load: Callable[[list[int]], Sequence[Any]]) -> Page:
    """Return a page of a list, and count the list up to `MOST`.

    The ids are read alone, so that no row is joined and read only to be sorted; and all that are counted, because a
    filter or an order without an index reads the table, which a query to count would do once more.
    """
    ids = list(rows.values_list("pk", flat=True)[: MOST + 1])
    shown = slice_of(ids[:MOST], number)
    return Page(load(list(shown.object_list)), shown.number, shown.count, len(ids) <= MOST)


def uncounted_page(rows: QuerySet[Any], number: int, load: Callable[[list[int]], Sequence[Any]]) -> Page:
    """Return a page of a list that has millions of rows and is in the order of an index."""
    start = (number - 1) * ROWS_PER_PAGE
    ids = list(rows.values_list("pk", flat=True)[start : start + ROWS_PER_PAGE + 1])
    return Page(load(ids[:ROWS_PER_PAGE]), number, min(start + len(ids), MOST), None)


def slice_of(rows: Sequence[Any], number: int) -> Page:
    """Return a page of rows that are in memory."""
    last = max((len(rows) - 1) // ROWS_PER_PAGE + 1, 1)
    number = min(number, last)
    start = (number - 1) * ROWS_PER_PAGE
    return Page(rows[start : start + ROWS_PER_PAGE], number, len(rows), True)


class ListQuery:
    """What an address asks of a list. Without parameters it is the user's default view, if there is one."""

    def __init__(self, request: HttpRequest, spec: ListSpec) -> None:
        self.request, self.spec = request, spec
        self.errors: list[str] = []
        self.views: list[Any] = list(SavedView.seen_by(request.user).filter(list=spec.name))
        self.default = next((view for view in self.views if view.is_default), None)
        if not request.GET and self.default is not None:
            request.GET = QueryDict(f"{self.default.query}&view={self.default.pk}", mutable=True)  # type: ignore[assignment]
        self.query = cleaned(request.GET.urlencode())
        if "columns" in self.query:
            # The form has a field for each.
            self.query["columns"] = ",".join(self.query.getlist("columns"))
        self.text = self.query.get("q", "").strip()
        self._check_names()
        if problem := search_problem(self.text):
            self.errors.append(problem)

    @cached_property
    def current(self) -> SavedView | None:
        chosen = self.request.GET.get("view", "")
        return next((view for view in self.views if str(view.pk) == chosen), None)

    @property
    def is_changed(self) -> bool:
        """Return whether the list shows something else than its view."""
        return self.current is not None and self.current.query != self.kept

    @property
    def kept(self) -> str:
        """Return the part of the address that a view keeps."""
        return kept_query(self.query.urlencode())

    def _check_names(self) -> None:
        known = self.spec.parameters
        for name in self.query:
            if name not in known:
                said = _("There is no filter “%(name)s”. It is ignored.")
                self.errors.append(said % {"name": name[:100]})

    @cached_property
    def filters(self) -> Any:
        own = {name for name in self.query if name in self.spec.filters.base_filters}
        query = QueryDict(mutable=True)
        for name in own:
            values = self.query.getlist(name)
            # Ticked rows are fields of their own.
            query.setlist(name, [",".join(values)] if name == "id" else values)
        return self.spec.filters(query, request=self.request)

    @cached_property
    def is_valid(self) -> bool:
        """Return whether the list can be shown. Otherwise the errors tell why, and there are no rows."""
        if not self.filters.is_valid():
            for name, errors in self.filters.form.errors.items():
                given = ", ".join(self.query.getlist(name))[:100]
                labels = {"name": self._label(name), "value": given}
                self.errors += [_("%(name)s: “%(value)s” is not valid.") % labels + f" {error}" for error in errors]
        return self.filters.is_valid() and not search_problem(self.text)

    def narrowed(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows that the filters leave."""
        if not self.is_valid:
            return rows.none()
        self.filters.queryset = rows
        narrowed: QuerySet[Any] = self.filters.filter_queryset(rows)
        return narrowed

    def _label(self, name: str) -> str:
        """Return the name of a filter: the start of its sentence."""
        return str(self.spec.sentences.get(name, name)).partition(":")[0]

    @property
    def has_more(self) -> bool:
        """Return whether a filter is used that the form does not show at first."""
        return any(name in self.spec.folded for name in self.query)

    @property
    def is_narrowed(self) -> bool:
        return bool(self.chips)

    @cached_property
    def chips(self) -> list[Chip]:
        found = []
        for name in self.spec.parameters:
            if name in self.spec.sentences:
                for value in self.query.getlist(name):
                    words = self.spec.words.get(name)
                    said = words(value, self.request) if words else value
                    text = str(self.spec.sentences[name]) % {"value": said[:60]}
                    found.append(Chip(text, self.address(without=(name, value))))
        return found

    def address(self, without: tuple[str, str] | None = None, **changed: Any) -> str:
        """Return the address of the first page of this list with some parameters changed, or one value left out."""
        query = self.query.copy()
        if without is not None:
            name, value = without
            query.setlist(name, [each for each in query.getlist(name) if each != value])
        for name, value in changed.items():
            if value is None:
                query.pop(name, None)
            else:
                query[name] = value
        for name, value in self._view:
            query[name] = value
        text = query.urlencode()
        return f"?{text}" if text else self.request.path

    @property
    def here(self) -> str:
        """Return the query of this list, for its files."""
        return self.address().removeprefix(self.request.path)

    @property
    def _view(self) -> list[tuple[str, str]]:
        """Return the parameter that keeps the view in links. Without it, an empty address would be the default."""
        if self.current is None and self.default is None:
            return []
        return [("view", str(self.current.pk) if self.current else NO_VIEW)]

    @property
    def all_address(self) -> str:
        """Return the address of the list without filters."""
        return f"?view={NO_VIEW}" if self.default else self.request.path

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """Return the fields that a form keeps: columns and view."""
        kept = [("columns", str(self.query["columns"]))] if "columns" in self.query else []
        return [*kept, *self._view]

    @property
    def hidden_filters(self) -> list[tuple[str, str]]:
        """Return the fields that the form of the columns keeps: filters and order."""
        query = [
            (str(name), str(value)) for name in self.query if name != "columns" for value in self.query.getlist(name)
        ]
        return [*query, *self._view]

    # Order

    @cached_property
    def sort(self) -> str:
        """Return the order: the name of a column, with a - before it for the reverse."""
        wanted = self.query.get("sort", self.spec.default_sort)
        column = self.spec.column(wanted.removeprefix("-"))
        if (column is None or not column.order) and wanted != self.spec.default_sort:
            said = _("The list cannot be ordered by “%(name)s”.")
            self.errors.append(said % {"name": wanted[:100]})
            return self.spec.default_sort
        return wanted

    @property
    def order_by(self) -> list[Any]:
        """Return the order for a query: rows without a value last, and a stable order of equal rows."""
        column = self.spec.column(self.sort.removeprefix("-"))
        if column is None:
            return []
        if self.sort.startswith("-") and column.is_path:
            return [*(F(name).desc(nulls_first=True) for name in column.order), "-pk"]
        if self.sort.startswith("-"):
            return [*(F(name).desc(nulls_last=True) for name in column.order), "-pk"]
        return [*(F(name).asc(nulls_last=True) for name in column.order), "pk"]

    @property
    def headers(self) -> list[Header]:
        return [self._header(each) for each in self.columns]

    def _header(self, column: ListColumn) -> Header:
        direction = {column.name: "up", f"-{column.name}": "down"}.get(self.sort, "")
        other = f"-{column.name}" if direction == "up" else column.name
        return Header(column, self.address(sort=other) if column.order else "", direction)

    @property
    def sorts(self) -> list[tuple[str, str, bool]]:
        """Return the orders for a menu, with their value and whether it is chosen: narrow screens have no headers."""
        arrows = (("", "↑"), ("-", "↓"))
        columns = [each for each in self.columns if each.order]
        orders = [
            (f"{sign}{each.name}", f"{capfirst(each.label)} {arrow}") for each in columns for sign, arrow in arrows
        ]
        return [(name if name != self.spec.default_sort else "", label, name == self.sort) for name, label in orders]

    # Columns

    @cached_property
    def columns(self) -> list[ListColumn]:
        names = [name for name in self.query.get("columns", "").split(",") if name]
        if unknown := [name for name in names if self.spec.column(name) is None]:
            self.errors.append(_("There is no column “%(name)s”.") % {"name": unknown[0][:100]})
        first, *rest = self.spec.columns
        chosen = [each for each in rest if each.name in names] or [each for each in rest if each.is_default]
        # The first column has the link to the row.
        return [first, *chosen]

    @property
    def choice(self) -> list[tuple[ListColumn, bool]]:
        """Return the columns that the user can choose, and whether they are shown."""
        return [(each, each in self.columns) for each in self.spec.columns[1:]]

    def file_columns(self, known: Iterable[Any]) -> list[Any]:
        """Return the columns of a file: those that are shown."""
        by_name = {each.name: each for each in known}
        names = dict.fromkeys(name for column in self.columns for name in column.file_columns)
        return [by_name[name] for name in names]

    def context(self) -> dict[str, Any]:
        """Return what the templates of every list need."""
        # They are computed when they are needed first, and their errors are shown above them.
        for name in ("is_valid", "sort", "columns"):
            getattr(self, name)
        return {
            "wanted": self,
            "query": self.query,
            "q": self.text,
            "views": [(view, f"{self.request.path}?{view.query}&view={view.pk}") for view in self.views],
            "may_share": self.request.user.has_perm(SavedView.SHARE_PERMISSION),
            "may_change_view": self.current is not None and self.current.may_be_changed_by(self.request.user),
        }
