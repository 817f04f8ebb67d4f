"""Which integrations the setting OCLTENSOR_INTEGRATIONS asks for."""

from torch_ocl import _C
from torch_ocl.integrations.table import TABLE

SETTING = "OCLTENSOR_INTEGRATIONS"


def reason_against(library: str) -> str:
    """Why a library is to be left as it is, or an empty text. ValueError for a wrong setting."""
    value = _C.get_setting(SETTING)
    words = [word.strip() for word in value.split(",") if word.strip()]
    if words == ["0"]:
        return f"{SETTING}=0"
    known = [row.library for row in TABLE]
    unknown = [word for word in words if word.removeprefix("-") not in known]
    signs = {word.startswith("-") for word in words}
    if unknown or len(signs) > 1:
        wrong = f"unknown: {', '.join(unknown)}" if unknown else "names with and without -"
        raise ValueError(
            f"{SETTING}='{value}': {wrong}. It takes 0, or names, or names with - before each, "
            f"joined by commas, of: {', '.join(known)}"
        )
    without = signs == {True}
    named = library in [word.removeprefix("-") for word in words]
    return f"{SETTING}={value}" if words and named == without else ""
