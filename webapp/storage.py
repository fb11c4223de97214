"""Static files with hashed names, also for imports inside ES modules."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticStorage(CompressedManifestStaticFilesStorage):
    # Without it a module imported by two names would be two instances, and the socket would double.
    support_js_module_import_aggregation = True
    # One pass settles one level of imports; Django's five are fewer than our modules are deep.
    max_post_process_passes = 20
