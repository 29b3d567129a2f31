"""Labels of the values that brands report as keys. Pages show the label, the API and the database keep the key."""

from django.utils.translation import gettext_lazy as _

ADMIN_STATES = {"enabled": _("enabled"), "disabled": _("disabled")}
DOWN_CAUSES = {
    "los": _("loss of signal"),
    "losi": _("loss of signal (LOSi)"),
    "lofi": _("loss of frame (LOFi)"),
    "sfi": _("signal fail (SFi)"),
    "loai": _("loss of acknowledgement (LOAi)"),
    "loami": _("loss of PLOAM (LOAMi)"),
    "loki": _("loss of key (LOKi)"),
    "lcdg": _("loss of GEM delineation (LCDG)"),
    "dying_gasp": _("power lost"),
    "deactivated": _("deactivated"),
    "deactivate_failed": _("deactivation failed"),
    "admin_down": _("disabled by the administrator"),
    "auth_failed": _("authentication failed"),
    "operator_check_failed": _("operator check failed"),
    "re_registered": _("registered again"),
    "popup_failed": _("POPUP failed"),
    "reset": _("reset"),
    "reset_by_command": _("reset by command"),
    "reset_by_button": _("reset by button"),
    "reset_by_software": _("reset by software"),
    "shutdown": _("shut down"),
    "ring": _("loop detected"),
    "rogue": _("rogue ONU"),
    "laser_always_on": _("laser always on"),
    "optical_module_off": _("optical module off"),
    "broadcast_attack": _("broadcast attack"),
    "wire_down": _("line down"),
    "omcc_down": _("OMCC channel down"),
    "omci_mismatch": _("OMCI mismatch"),
    "offline": _("offline"),
    "unknown": _("unknown"),
}


def down_cause(key: str) -> str:
    """Return the label of a down cause; a code of a newer firmware stays as it is."""
    return str(DOWN_CAUSES.get(key, key))
