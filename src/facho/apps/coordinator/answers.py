"""Questions to a forecast and their answers as sentences, in the user's language."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.apps.inventory import labels
from facho.apps.inventory.formats import decimal
from facho.apps.inventory.models import brand_label
from facho.apps.inventory.spans import interval
from facho.brands import BRANDS

# Names in a sentence. The rest is counted.
MOST_NAMES = 3


def question_text(params: Mapping[str, Any]) -> str:
    """Return what was asked, such as: +20 OLTs, State every 2 min."""
    question = params.get("question")
    if question is None:
        return _imaginary(params)
    parts = []
    if olts := question.get("more_olts"):
        parts.append(
            ngettext("+%(n)d OLT like the present ones", "+%(n)d OLTs like the present ones", olts) % {"n": olts}
        )
    if pollers := question.get("more_pollers", 0):
        n = abs(pollers)
        more = ngettext("%(n)d poller more", "%(n)d pollers more", n)
        fewer = ngettext("%(n)d poller fewer", "%(n)d pollers fewer", n)
        parts.append((more if pollers > 0 else fewer) % {"n": n})
    if asked := question.get("interval"):
        job = labels.job(asked["name"])
        # Brands have jobs with the same names.
        if brand := BRANDS.get(asked.get("brand", "")):
            job = f"{job} ({brand_label(brand)})"
        values = {"job": job, "interval": interval(asked["seconds"])}
        olts = len(asked.get("olts", ()))
        if olts:
            said = ngettext("%(job)s every %(interval)s on %(n)d OLT", "%(job)s every %(interval)s on %(n)d OLTs", olts)
            parts.append(said % {**values, "n": olts})
        else:
            parts.append(_("%(job)s every %(interval)s") % values)
    return ", ".join(parts) or _("The fleet as it is")


def _imaginary(params: Mapping[str, Any]) -> str:
    """Return what was requested of a forecast without a question, which only the API has."""
    parts = []
    if olts := params.get("olts"):
        parts.append(ngettext("%(n)d imaginary OLT", "%(n)d imaginary OLTs", olts) % {"n": olts})
    if pollers := params.get("pollers"):
        parts.append(ngettext("%(n)d poller", "%(n)d pollers", pollers) % {"n": pollers})
    if params.get("dead"):
        parts.append(_("%(n)d %% of the OLTs do not answer") % {"n": params["dead"]})
    if params.get("jobs"):
        parts.append(_("jobs: %(jobs)s") % {"jobs": labels.jobs(job["name"] for job in params["jobs"])})
    return ", ".join(parts) or _("The fleet as it is")


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """The answer of a finished question."""

    params: Mapping[str, Any]
    result: Mapping[str, Any]

    @property
    def _answer(self) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self.result["answer"]
        return answer

    @property
    def fits(self) -> bool:
        return bool(self._answer["fits"])

    @property
    def word(self) -> str:
        return _("Yes") if self.fits else _("No")

    @property
    def reasons(self) -> list[str]:
        """Return why, one sentence for each reason of a No."""
        result, today = self.result, self.result["today"]
        values = {
            "busy": decimal(result["busy"], 0),
            "on_time": decimal(result["on_time"], 1),
            "on_time_today": decimal(today["on_time"], 1),
            "saturated": decimal(result["saturated"], 0),
            "saturated_today": decimal(today["saturated"], 0),
            "n": self._answer["missed_total"],
            "jobs": self._missed(),
        }
        if self.fits:
            return [
                _(
                    "No quota is missed because of it, %(on_time)s %% of the runs start on time, and the pollers are "
                    "busy for %(busy)s %% of the time."
                )
                % values
            ]
        sentences = {
            "quotas": ngettext(
                "%(n)d quota would be missed: %(jobs)s.", "%(n)d quotas would be missed: %(jobs)s.", values["n"]
            ),
            "saturated": _(
                "The pollers would be saturated for %(saturated)s %% of the time; today it is %(saturated_today)s %%."
            ),
            "late": _("Only %(on_time)s %% of the runs would start on time; today it is %(on_time_today)s %%."),
        }
        return [sentences[code] % values for code in self._answer["reasons"]]

    def _missed(self) -> str:
        missed = [f"{labels.job(each['job'])} @ {each['olt']}" for each in self._answer["missed"]]
        return _some(missed, self._answer["missed_total"])

    @property
    def changes(self) -> list[str]:
        """Return what would make it a Yes: each is enough alone, but for the advice for single OLTs."""
        if self.fits:
            return []
        found, result = self._answer["changes"], self.result
        parts = []
        if found["pollers"]:
            parts.append(
                _("Use %(n)d pollers instead of %(now)d (FACHO_POLLERS).")
                % {"n": found["pollers"], "now": result["pollers"]}
            )
        if found["interval_seconds"]:
            job = labels.job(self.params["question"]["interval"]["name"]) if self._asks_interval else ""
            values = {"interval": interval(found["interval_seconds"]), "job": job}
            parts.append(_("%(job)s fits with an interval of %(interval)s.") % values)
        if found["more_olts"] is not None:
            n = found["more_olts"]
            said = ngettext(
                "%(n)d more OLT fits without any other change.", "%(n)d more OLTs fit without any other change.", n
            )
            parts.append(said % {"n": n} if n else _("No additional OLT fits without any other change."))
        for each in found["advice"]:
            values = {
                "olt": each["olt"],
                "job": labels.job(each["job"]),
                "interval": interval(each["interval_seconds"]),
            }
            parts.append(
                _("%(olt)s has more work than an hour allows: run %(job)s there every %(interval)s or less often.")
                % values
            )
        return parts or [
            _(
                "No number of pollers and no usual interval makes it fit. Read the quotas below: the OLTs are too slow "
                "for their jobs."
            )
        ]

    @property
    def _asks_interval(self) -> bool:
        return bool((self.params.get("question") or {}).get("interval"))

    @property
    def notes(self) -> list[str]:
        """Return what the reader must know about the answer."""
        result, answer, parts = self.result, self._answer, []
        today = result["today"]
        if missed := today["missed_quotas"]:
            said = ngettext(
                "%(n)d quota is missed today already. It counts only if the question changes its job.",
                "%(n)d quotas are missed today already. They count only if the question changes their job.",
                missed,
            )
            parts.append(said % {"n": missed})
        if unmeasured := answer["unmeasured"]:
            said = ngettext(
                "%(n)d job on an OLT has not run yet. Its usual duration is assumed.",
                "%(n)d jobs on OLTs have not run yet. Their usual durations are assumed.",
                unmeasured,
            )
            parts.append(said % {"n": unmeasured})
        if today["dead"]:
            said = ngettext(
                "%(n)d OLT does not answer. Its quotas do not count.",
                "%(n)d OLTs do not answer. Their quotas do not count.",
                today["dead"],
            )
            parts.append(said % {"n": today["dead"]})
        if answer["pool_is_automatic"] and result["pollers"] != today["pollers"]:
            parts.append(
                _("The pool is automatic, and would grow from %(now)d to %(n)d pollers.")
                % {"now": today["pollers"], "n": result["pollers"]}
            )
        return parts


def _some(names: Iterable[str], total: int) -> str:
    """Return the first names of a list, and how many more there are."""
    shown = list(names)[:MOST_NAMES]
    if total > len(shown):
        shown.append(ngettext("%(n)d more", "%(n)d more", total - len(shown)) % {"n": total - len(shown)})
    return ", ".join(shown)
