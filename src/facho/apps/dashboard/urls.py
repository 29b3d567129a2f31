"""URLs of the pages."""

from django.urls import include, path, register_converter

from facho.apps.dashboard import (
    account,
    changes,
    compare,
    execution_list,
    login,
    olt_list,
    onu,
    onu_list,
    pon_ports,
    problems,
    saved_views,
    search,
    single_sign_on,
    stream,
    views,
)

register_converter(pon_ports.PortPart, "port_part")

pages = [
    path("", views.overview, name="overview"),
    path("problems/", problems.problems, name="problems"),
    path("problems/<int:problem_id>/", problems.problem, name="problem"),
    path("problems/<int:problem_id>/act/", problems.act, name="act-on-problem"),
    path("olts/", olt_list.olts, name="olts"),
    path("olts/bulk/", olt_list.olts_bulk, name="olts-bulk"),
    path("olts/csv/", olt_list.olts_file, {"file_format": "csv"}, name="olts-csv"),
    path("olts/xlsx/", olt_list.olts_file, {"file_format": "xlsx"}, name="olts-xlsx"),
    path("olts/<int:olt_id>/", views.olt, name="olt"),
    path("olts/<int:olt_id>/ports/<port_part:slot>/<port_part:port>/", pon_ports.port, name="port"),
    path(
        "olts/<int:olt_id>/ports/<port_part:slot>/<port_part:port>/history/",
        pon_ports.port_history,
        name="port-history",
    ),
    path(
        "olts/<int:olt_id>/ports/<port_part:slot>/<port_part:port>/capacity/",
        pon_ports.port_capacity,
        name="port-capacity",
    ),
    path("ports/", pon_ports.ports, name="ports"),
    path("olts/<int:olt_id>/compare/", compare.compare, name="compare"),
    path("nodes/<int:node_id>/", views.node, name="node"),
    path("onus/", onu_list.onus, name="onus"),
    path("onus/csv/", onu_list.onus_file, {"file_format": "csv"}, name="onus-csv"),
    path("onus/xlsx/", onu_list.onus_file, {"file_format": "xlsx"}, name="onus-xlsx"),
    path("onus/<int:onu_id>/", onu.onu, name="onu"),
    path("onus/<int:onu_id>/events/", onu.onu_events, name="onu-events"),
    path("onus/<int:onu_id>/history/", onu.onu_history, name="onu-history"),
    path("executions/", execution_list.executions, name="executions"),
    path("executions/csv/", execution_list.executions_file, {"file_format": "csv"}, name="executions-csv"),
    path("executions/xlsx/", execution_list.executions_file, {"file_format": "xlsx"}, name="executions-xlsx"),
    path("views/", saved_views.create, name="saved-views"),
    path("views/<int:view_id>/", saved_views.change, name="saved-view"),
    path("search/", search.search, name="search"),
    path("search/suggestions/", search.suggestions, name="suggestions"),
    path("changes/", changes.changes, name="changes"),
    path("account/tokens/", account.tokens, name="tokens"),
    path("account/tokens/<int:token_id>/revoke/", account.revoke_token, name="revoke-token"),
    path("account/password/", account.password, name="password"),
    path("account/sessions/", account.sessions, name="sessions"),
    path("account/sessions/end/", account.end_sessions, name="end-sessions"),
    path("account/two-factor/", account.two_factor, name="two-factor"),
    path("events/", stream.events, name="events"),
]

urlpatterns = [
    path("login/", login.Login.as_view(), name="login"),
    path("login/code/", login.LoginCode.as_view(), name="login-code"),
    path("login/oidc/", single_sign_on.start, name="oidc-login"),
    path("login/oidc/callback/", single_sign_on.callback, name="oidc-callback"),
    path("logout/", single_sign_on.Logout.as_view(), name="logout"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("", include((pages, "dashboard"))),
]
