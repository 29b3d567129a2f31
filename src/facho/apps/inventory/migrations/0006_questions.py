import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0005_device'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Question',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('try_job', 'try a job')], max_length=20, verbose_name='type')),
                ('body', models.JSONField(default=dict, verbose_name='question')),
                ('state', models.CharField(choices=[('pending', 'pending'), ('running', 'running'), ('answered', 'answered'), ('failed', 'failed'), ('expired', 'expired')], default='pending', max_length=10, verbose_name='state')),
                ('answer', models.JSONField(default=dict, verbose_name='answer')),
                ('error', models.TextField(blank=True, default='', verbose_name='error')),
                ('asked_at', models.DateTimeField(verbose_name='requested values')),
                ('answered_at', models.DateTimeField(null=True, verbose_name='answered')),
                ('expires_at', models.DateTimeField(verbose_name='expires')),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'question',
                'verbose_name_plural': 'questions',
                'db_table': 'questions',
                'ordering': ['-asked_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('state', 'pending')), fields=['id'], name='question_pending'), models.Index(fields=['asked_at'], name='question_asked')],
            },
        ),
    ]
