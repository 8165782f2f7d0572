"""Configurations as plain data: what a run's hash and a checkpoint's identity are made of."""

from __future__ import annotations

from dataclasses import fields
from types import MappingProxyType

#: Metadata of a field that came after networks had been trained without it. At its default it is left out, so that
#: their configurations keep their hash.
ADDED = MappingProxyType({"added": True})


def settings_of(config: object) -> dict[str, object]:
    """The fields of a frozen dataclass and their values, without those :data:`ADDED` that have their default."""
    return {
        field.name: getattr(config, field.name)
        for field in fields(config)
        if not (field.metadata.get("added") and getattr(config, field.name) == field.default)
    }
