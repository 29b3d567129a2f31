"""Files that are no import of OLTs: each is explained, and none is a traceback."""

import datetime
import io
import zipfile

import openpyxl
import pytest
from cast import make_user
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from facho.apps.accounts.roles import Role
from facho.apps.inventory.models import Olt

pytestmark = pytest.mark.django_db


def xlsx(*rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def archive(**parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        for name, content in parts.items():
            opened.writestr(name, content)
    return file.getvalue()


REFUSED = {
    "empty": b"",
    "blank lines": b"\n\n\n",
    "only a header": b"name,host,community\n",
    "no header": b"OLT-1,10.0.0.7,public\n",
    "only communities": b"community\npublic\n",
    "a community without a name": b"community,name,host\npublic,,10.0.0.7\n",
    "the community twice": b"name,host,community,community\nOLT-1,10.0.0.7,public,private\n",
    "a community with a line end": b'name,host,community\n"OLT-1",10.0.0.300,"pub\nlic"\n',
    "too many cells": b"name,host,community\nOLT-1,10.0.0.7,public,x,y,z\n",
    "too few cells": b"name,host,community\nOLT-1\n",
    "NUL": b"name,host,community\nOLT\x001,10.0.0.7,public\n",
    "UTF-16": "name,host,community\nOLT-1,10.0.0.7,public\n".encode("utf-16"),
    "Latin 1": "name,host,community\nOLT-Ñ,10.0.0.7,público\n".encode("latin-1"),
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
    "an open quote": b'name,host,community\n"OLT-1,10.0.0.7,public\n',
    "an archive": archive(a="b"),
    "half a workbook": xlsx(["name", "host", "community"], ["OLT-1", "10.0.0.7", "public"])[:900],
    "an empty workbook": xlsx(),
    "a workbook of a date": xlsx(["name", "host", "community"], [datetime.date(2025, 6, 1), "10.0.0.300", 7]),
    "a workbook with numbers as header": xlsx([1, 2, 3], ["OLT-1", "10.0.0.7", "public"]),
    "20 MB": b"name,host,community\n" + b"OLT-1,10.0.0.7,public\n" * 910_000,
}


@pytest.fixture
def engineer():
    client = Client()
    client.force_login(make_user(Role.ENGINEER))
    return client


@pytest.mark.parametrize("path", ["/olts/import/", "/olts/import/preview/"])
@pytest.mark.parametrize("content", [pytest.param(content, id=name) for name, content in REFUSED.items()])
def test_an_odd_file_is_explained(engineer, path, content):
    answer = engineer.post(path, {"file": SimpleUploadedFile("olts.csv", content), "community": ""})

    text = answer.content.decode()
    problems = [*answer.context["form"].errors.get("file", ())]
    if answer.context["imported"]:
        problems += [sentence for _row, sentence in answer.context["imported"].problems]
    assert answer.status_code == 200
    assert problems, text
    assert "Traceback" not in text
    assert not any(
        word in " ".join(problems) for word in ("Error:", "Exception", "object has no", "NoneType", "KeyError")
    )
    assert not Olt.objects.exists()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"community,host,name\npublic,10.0.0.7,OLT-1\n", id="the community first"),
        pytest.param("\ufeffname;host;community\nOLT-1;10.0.0.7;public\n".encode(), id="semicolons"),
        pytest.param(xlsx(["name", "host", "community"], ["OLT-1", "10.0.0.7", "public"]), id="workbook"),
        pytest.param(xlsx(["name", "host", "community", None], ["OLT-1", "10.0.0.7", "public"], [None]), id="blanks"),
    ],
)
def test_a_community_in_any_column_is_stored(engineer, content):
    answer = engineer.post("/olts/import/", {"file": SimpleUploadedFile("olts.csv", content), "community": ""})

    assert answer.status_code == 302, answer.context["imported"] and answer.context["imported"].problems
    assert Olt.objects.get().community.reveal() == "public"
