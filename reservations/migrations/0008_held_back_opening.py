from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reservations", "0007_host_hold")]
    operations = [
        migrations.AddField(
            model_name="booking",
            name="held_back_since",
            field=models.DateTimeField(
                blank=True,
                help_text="its host reported that a device is not open for it yet",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="booking",
            name="held_back_why",
            field=models.CharField(blank=True, max_length=500),
        ),
    ]
