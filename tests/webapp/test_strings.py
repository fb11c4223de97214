"""Every text that a script asks for is there, and none is kept for nobody."""

import re
from pathlib import Path

from django.conf import settings

from reservations.core.usage import Code
from webapp.pages.strings import strings

MODULES = Path(settings.ROOT) / "webapp" / "static" / "webapp" / "js"


def test_scripts_and_texts_name_the_same_keys():
    code = "\n".join(path.read_text() for path in MODULES.glob("*.js"))
    calls = re.findall(r"""(?<!\w)t\(([^()]*?["`][^()]*?)[,)]""", code)
    asked = {key for call in calls for key in re.findall(r'"(\w+)"', call)}
    verdicts = {f"chip_{code}" for code in Code.__args__}
    assert asked | verdicts == set(strings())
