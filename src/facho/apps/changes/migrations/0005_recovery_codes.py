from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('changes', '0004_positions_set'),
    ]

    operations = [
        migrations.AlterField(
            model_name='change',
            name='action',
            field=models.CharField(choices=[('created', 'created'), ('changed', 'changed'), ('deleted', 'deleted'), ('run_requested', 'run requested'), ('tried', 'job tried'), ('read', 'ONU read'), ('positions_set', 'positions of ONUs set'), ('breaker_opened', 'breaker opened'), ('breaker_closed', 'breaker closed'), ('acknowledged', 'acknowledged'), ('test_requested', 'test requested'), ('sent_again', 'sent again'), ('revoked', 'revoked'), ('login', 'login'), ('login_failed', 'login failed'), ('locked_out', 'locked out'), ('logout', 'logout'), ('unlocked', 'unlocked'), ('sessions_ended', 'sessions ended'), ('two_factor_on', 'two-factor authentication turned on'), ('two_factor_off', 'two-factor authentication turned off'), ('recovery_code_used', 'recovery code used'), ('recovery_codes_new', 'new recovery codes'), ('keys_rotated', 'keys rotated')], max_length=20, verbose_name='action'),
        ),
    ]
