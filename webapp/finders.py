"""Offers the few files of npm packages that a browser gets, instead of whole package folders."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.checks import CheckMessage
from django.core.files.storage import FileSystemStorage

# Where it stands under /static/npm/ -> where npm puts it.
FILES = {
    "pico/pico.min.css": "@picocss/pico/css/pico.min.css",
    "temporal-polyfill/global.js": "temporal-polyfill/global.js",
}


class _NpmStorage(FileSystemStorage):
    """Opens a file of a package by the shorter name under which it is served."""

    # collectstatic puts what a storage lists below its prefix.
    prefix = "npm"

    def path(self, name: str) -> str:
        return super().path(FILES.get(name.replace("\\", "/"), name))


class NpmFinder(BaseFinder):
    def __init__(self) -> None:
        self.storage = _NpmStorage(location=settings.NODE_MODULES)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        name = path.removeprefix(f"{self.storage.prefix}/")
        found = name != path and name in FILES and self.storage.exists(name)
        if find_all:
            return [self.storage.path(name)] if found else []
        return self.storage.path(name) if found else []

    def list(self, ignore_patterns: Any) -> Iterator[tuple[str, FileSystemStorage]]:
        return ((name, self.storage) for name in FILES if self.storage.exists(name))
