from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0007_keep_followers'),
    ]

    operations = [
        migrations.AlterField(
            model_name='workflownode',
            name='run_requested_at',
            field=models.DateTimeField(editable=False, null=True, verbose_name='run asked for'),
        ),
    ]
