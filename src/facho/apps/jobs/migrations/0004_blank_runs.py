from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0003_durations_and_retries'),
    ]

    operations = [
        migrations.AddField(
            model_name='workflownode',
            name='blank_runs',
            field=models.JSONField(default=dict, editable=False),
        ),
    ]
