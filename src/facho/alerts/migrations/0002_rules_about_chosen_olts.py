from django.db import migrations, models


def note_chosen_olts(apps, schema_editor):
    rules = apps.get_model("alerts", "Rule").objects.using(schema_editor.connection.alias)
    chosen = rules.filter(olts__isnull=False).values_list("pk", flat=True)
    rules.filter(pk__in=list(chosen)).update(is_narrowed=True)


class Migration(migrations.Migration):
    dependencies = [
        ("alerts", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="rule",
            name="is_narrowed",
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.RunPython(note_chosen_olts, migrations.RunPython.noop, elidable=True),
    ]
