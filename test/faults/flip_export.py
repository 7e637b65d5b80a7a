#!/usr/bin/env python3
"""Flips single bits of an export and verifies each with scripts/verify_audit.py, in one process.

    python3 flip_export.py VERIFIER EXPORT HEAD SEED COUNT

LEASEHOLD_AUDIT_KEY has the key. Prints JSON: how many flips broke the chain at their line, and how many made their line
invalid. Exits with 1 at the first flip that was accepted, or found elsewhere.
"""

import contextlib
import importlib.util
import io
import json
import random
import sys
import tempfile

sys.dont_write_bytecode = True


def main(verifier, export, head, seed, count):
    spec = importlib.util.spec_from_file_location("verify_audit", verifier)
    module = importlib.util.module_from_spec(spec)
    sys.modules["verify_audit"] = module
    spec.loader.exec_module(module)
    with open(export, "rb") as file:
        original = file.read()
    dice = random.Random(seed)
    result = {"broken": 0, "rejected": 0}
    with tempfile.NamedTemporaryFile() as flipped:
        for _ in range(count):
            content = bytearray(original)
            at = dice.randrange(len(content))
            content[at] ^= 1 << dice.randrange(8)
            flipped.seek(0)
            flipped.write(content)
            flipped.flush()
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                status = module.guarded([flipped.name, "--head", head])
            line = original.count(b"\n", 0, at) + 1
            # A flip of a number breaks the chain there; one of a line's end joins two lines.
            if status == 2:
                result["rejected"] += 1
            elif status == 1 and json.loads(out.getvalue())["break_at_entry"] == line:
                result["broken"] += 1
            else:
                sys.exit(f"byte {at} of line {line}: status {status}, {out.getvalue()}")
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
