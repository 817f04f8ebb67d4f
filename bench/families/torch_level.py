"""Rows that need PyTorch on both sides: small operators as Python calls, whole models."""

from __future__ import annotations

from rows import Row, Scale


def small(scale: Scale) -> list[Row]:
    return []


def models(scale: Scale) -> list[Row]:
    return []
