"""Replacement of the device of an OLT in API v1."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.accounts.permissions import needs
from facho.apps.inventory.api import OLTS, resolve_host
from facho.apps.inventory.changes import one_at_a_time
from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import ScopedView
from facho.apps.inventory.serializers import CheckedSerializer, OltSerializer, SecretInput
from facho.store.replacement import replace_device


class ReplaceSerializer(CheckedSerializer[Olt]):
    """Address, brand and credentials of the new device. What is omitted stays as it is.

    With another address, the secrets must be given again.
    """

    brand = OltSerializer._declared_fields["brand"]
    host = serializers.CharField(max_length=253, help_text="Address of the new device: IP address or host name.")
    community = SecretInput()
    v3_auth_key = SecretInput()
    v3_priv_key = SecretInput()

    class Meta:
        model = Olt
        fields = [
            "host",
            "port",
            "brand",
            "version",
            "community",
            "v3_user",
            "v3_auth",
            "v3_auth_key",
            "v3_priv",
            "v3_priv_key",
        ]

    def update(self, instance: Olt, validated_data: dict[str, Any]) -> Olt:
        for name, value in validated_data.items():
            setattr(instance, name, value)
        replace_device(instance, validated_data, timezone.now())
        return instance


class ReplaceView(ScopedView, generics.GenericAPIView[Olt]):
    """Replacement of a device."""

    queryset = OLTS
    olt_path = "pk"
    serializer_class = ReplaceSerializer
    body_serializer = ReplaceSerializer
    permission_classes = (needs("inventory.change_olt"),)
    filter_backends = ()

    @extend_schema(operation_id="olts_replace", request=ReplaceSerializer, responses={200: OltSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Put another device in the place of this OLT. Its ONUs keep their history and are recognised by their serial.

        Jobs of the old brand are removed, and the usual jobs of the new one applied. An empty `brand` lets Facho
        identify the device.
        """
        resolve_host(request)
        olt = self.get_object()
        olt.is_being_replaced = True
        with one_at_a_time():
            body = ReplaceSerializer(olt, data=request.data, context=self.get_serializer_context())
            body.is_valid(raise_exception=True)
            body.save()
        answer = OltSerializer(self.get_queryset().get(pk=olt.pk), context=self.get_serializer_context())
        return Response(answer.data)
