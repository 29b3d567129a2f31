"""Login and tokens of API v1."""

from typing import Any

from django.core.exceptions import ValidationError as InvalidValue
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ValidationError

from facho.apps.accounts.filters import ApiTokenFilter
from facho.apps.accounts.models import ApiToken
from facho.apps.accounts.permissions import MayManageTokens
from facho.apps.accounts.serializers import ApiTokenSerializer, LoginSerializer, NewTokenSerializer, TokenAnswer
from facho.apps.rest.filters import LIST_BACKENDS
from facho.apps.rest.strict import StrictView


class TokenLogin(StrictView):
    """Exchange name and password for the key of a new token. After several failed attempts the user is locked."""

    # A login may carry an old token or session; both are ignored.
    authentication_classes = ()
    permission_classes = ()
    body_serializer = LoginSerializer

    @extend_schema(
        auth=[],
        request=LoginSerializer,
        responses={200: TokenAnswer, 429: OpenApiResponse(description="Locked. `Retry-After` is in seconds.")},
        tags=["auth"],
    )
    def post(self, request: Request) -> Response:
        login = LoginSerializer(data=request.data, context={"request": request._request})
        login.is_valid(raise_exception=True)
        return Response({"token": ApiToken.issue_for_login(login.validated_data["user"])})


class ApiTokenViewSet(StrictView, viewsets.ModelViewSet[ApiToken]):
    """Your API tokens; superusers see all. Deleting a token revokes it."""

    queryset = ApiToken.objects.select_related("user", "role")
    serializer_class = ApiTokenSerializer
    permission_classes = (MayManageTokens,)
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    filter_backends = LIST_BACKENDS
    filterset_class = ApiTokenFilter
    search_fields = ["name", "prefix", "user__username"]
    ordering_fields = ["id", "name", "created_at", "expires_at", "revoked_at", "last_used_at"]

    def get_queryset(self) -> QuerySet[ApiToken]:
        user: Any = self.request.user
        return super().get_queryset() if user.is_superuser else super().get_queryset().filter(user=user.pk)

    @extend_schema(request=ApiTokenSerializer, responses={201: NewTokenSerializer})
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        body = self.get_serializer(data=request.data)
        body.is_valid(raise_exception=True)
        user: Any = request.user
        token: Any = ApiToken(user_id=user.pk, **body.validated_data)
        try:
            token.token = token.issue()
        except InvalidValue as error:
            raise ValidationError({"non_field_errors": error.messages}) from error
        return Response(NewTokenSerializer(token).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses={200: ApiTokenSerializer, 409: OpenApiResponse(description="The token was revoked.")})
    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        if self.get_object().revoked_at is not None:
            detail = _("This token was revoked. Create a new one.")
            return Response({"detail": detail}, status=status.HTTP_409_CONFLICT)
        return super().partial_update(request, *args, **kwargs)

    def perform_destroy(self, instance: ApiToken) -> None:
        instance.revoke()
