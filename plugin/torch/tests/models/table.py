"""All models by name. A builder takes nothing and returns a Case; torch's seed is set before."""

from .language import LANGUAGE
from .own import OWN
from .vision import VISION

BUILDERS = {**VISION, **LANGUAGE, **OWN}
