"""Writes a file's bytes as a C++ array. usage: embed_data.py FILE OUT.cpp"""

import pathlib
import sys

data = pathlib.Path(sys.argv[1]).read_bytes()
rows = "\n".join(",".join(map(str, data[i : i + 32])) + "," for i in range(0, len(data), 32))
pathlib.Path(sys.argv[2]).write_text(
    f"extern const unsigned char digits_gz[];\nextern const unsigned long digits_gz_size;\n"
    f"const unsigned char digits_gz[] = {{\n{rows}\n}};\nconst unsigned long digits_gz_size = "
    f"{len(data)};\n"
)
