"""ONUs whose place another one holds get their last real index back, and are missing.

Earlier versions gave them an index of the form `~<id>~<index>` and left them present until two discoveries had
missed them.
"""

from django.db import migrations
from django.utils import timezone


def repair(apps, schema_editor):
    Onu = apps.get_model('telemetry', 'Onu')
    now = timezone.now()
    for onu in Onu.objects.filter(index__startswith='~').only('olt_id', 'index', 'missing_since').iterator():
        index = onu.index.split('~')[-1]
        holder = Onu.objects.filter(olt_id=onu.olt_id, index=index, place_taken=False).only('moved_at').first()
        since = onu.missing_since or (holder and holder.moved_at) or now
        Onu.objects.filter(pk=onu.pk).update(
            index=index, place_taken=True, replaced_by=holder and holder.pk, missing_since=since
        )


class Migration(migrations.Migration):

    dependencies = [
        ('telemetry', '0005_replaced_onus'),
    ]

    operations = [
        migrations.RunPython(repair, migrations.RunPython.noop),
    ]
