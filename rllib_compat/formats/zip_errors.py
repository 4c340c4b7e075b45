"""What Python raises for a ZIP archive that is damaged, encrypted, or packed in an unknown way."""

from __future__ import annotations

import zipfile
import zlib

try:
    from lzma import LZMAError
except ImportError:  # Python may be built without it, and then unpacks none
    LZMAError = zlib.error  # type: ignore[misc,assignment]

_OF_PACKING = (zlib.error, LZMAError, EOFError)
_OF_HEADERS = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError)
DAMAGED_ZIP = (*_OF_PACKING, *_OF_HEADERS)
