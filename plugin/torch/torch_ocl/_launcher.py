"""Which of a host's processes this one is, by the launcher's environment."""

import os


def place() -> tuple[int, int]:
    """Which process of this host torchrun (``LOCAL_RANK``) has started this one as, and how many
    there are; (0, 1) without it, or where these are no such numbers."""
    rank, ranks = (os.environ.get(name, "") for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    if not (rank.isdecimal() and ranks.isdecimal()) or not int(rank) < int(ranks) <= 4096:
        return 0, 1
    return int(rank), int(ranks)
