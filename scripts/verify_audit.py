#!/usr/bin/env python3
"""Verify an export of a Leasehold audit log without Leasehold. Needs only Python 3.8 or newer.

The export is newline-delimited JSON, oldest entry first. Each entry's hmac is

    base64(HMAC-SHA256(audit key, previous hmac as 32 bytes || canonical bytes))

where the first entry follows 32 zero bytes, and the canonical bytes are one JSON array without white space:
["leasehold-audit-v1", seq, id, ...], the fields in the order of FIELDS below. An entry about the use of a credential
also has the fields of USE_FIELDS: its array begins with "leasehold-audit-v2", and they follow at its end. The head
record holds the last seq and hmac, under the HMAC of ["leasehold-head-v1", seq, hmac], so that a truncated log is
detected too.

It stops at the first break and ignores all lines after it.
"""

from __future__ import annotations

import argparse
import base64
import hmac
import json
import os
import re
import sys
from operator import itemgetter
from typing import Any, BinaryIO, NamedTuple, NoReturn, Tuple

VALID, BROKEN, CANNOT_TELL = 0, 1, 2

REQUIRED = ("seq", "id", "timestamp", "event_type", "agent_name", "resource", "action", "result")
NULLABLE = ("policy_name", "lease_id", "reason", "request_id", "remote_addr")
FIELDS = REQUIRED + NULLABLE  # in the order of the canonical bytes
USE_TEXTS = ("method", "host", "target_path")
USE_NUMBERS = ("status", "bytes_in", "bytes_out", "redactions")
USE_FIELDS = (*USE_TEXTS, *USE_NUMBERS, "ended")
KEYS = frozenset((*FIELDS, "hmac"))
USE_KEYS = KEYS.union(USE_FIELDS)
REQUIRED_TYPES = [int] + [str] * (len(REQUIRED) - 1)
NULLABLE_TYPES = frozenset((str, type(None)))
NULLABLE_NUMBERS = frozenset((int, type(None)))

GENESIS = bytes(32)
LINE_LIMIT = 1 << 20
SMALL_FILE_LIMIT = 1 << 16
DECIMAL = re.compile(r"0|[1-9][0-9]{0,15}")  # 16 digits, as in the largest integer that JavaScript keeps exact
HEAD_HEADER = b"leasehold-audit-head:"
KEY_VARIABLE = "LEASEHOLD_AUDIT_KEY"

EXAMPLE = f"""\
example:
  curl -sf -H "Authorization: Bearer $TOKEN" -D head.txt -o audit.ndjson \\
    http://127.0.0.1:7700/api/v1/audit/export
  python3 verify_audit.py audit.ndjson --key-file audit.key --head-file head.txt

The key file contains one line, the 32-byte audit key as base64. Without --key-file
the key is read from {KEY_VARIABLE}, never from the command line.
The result is one JSON object on standard output; errors go to standard error.

exit status: 0 the chain is valid, 1 it is broken, 2 cannot tell (nothing on standard output)
"""


class CannotTell(Exception):
    """The export, key or head record is malformed or unreadable, so the state of the chain is unknown."""


class Broken(Exception):
    """The export is well-formed, but it is not the log that the service wrote."""

    def __init__(self, entry: int, timestamp: str | None, why: str) -> None:
        super().__init__(why)
        self.entry, self.timestamp, self.why = entry, timestamp, why


# seq, timestamp, canonical bytes, and the hmac's text as the export has it, because a second base64 encoding of the
# same bytes is a forgery. A plain tuple, because each line needs one and a named tuple is several times slower.
Entry = Tuple[int, str, bytes, bytes]


class Head(NamedTuple):
    seq: int
    hmac: str
    mac: str


# JSON.stringify escapes exactly what Python does with ensure_ascii=False. They differ only in lone surrogates,
# which cannot be encoded to UTF-8 here.
to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it has the same key twice")
    return found


def bounded_int(digits: str) -> int:
    if len(digits) > 16:
        raise ValueError("it has an integer out of range")
    return int(digits)


from_json = json.JSONDecoder(object_pairs_hook=unique_keys, parse_int=bounded_int).decode
canonical_fields = itemgetter(*FIELDS)
use_fields = itemgetter(*USE_FIELDS)


def mac(keyed: hmac.HMAC, message: bytes) -> bytes:
    state = keyed.copy()  # keyed once: a quarter less than giving the key every time
    state.update(message)
    return state.digest()


def plain_line() -> re.Pattern[bytes]:
    """Matches a line as the service writes it, if no string in it has an escape. The matched text is then already
    canonical and need not be parsed and serialised again, which makes most lines twice as fast."""
    text = r'"[^"\\\x00-\x1f]*"'
    values = {"seq": "[1-9][0-9]{0,15}", **dict.fromkeys(NULLABLE, f"null|{text}")}
    shape = ",".join(f'"{name}":({values.get(name, text)})' for name in (*FIELDS, "hmac"))
    return re.compile(f"{{{shape}}}\n".encode())


PLAIN_LINE = plain_line()


def read_entry(line: bytes) -> Entry:
    """Parses one line strictly. Raises ValueError with the reason if it is not an entry."""
    if len(line) > LINE_LIMIT:
        raise ValueError("it is longer than 1 MiB")
    if not line.endswith(b"\n"):
        raise ValueError("it has no end, so the export was cut short")
    plain = PLAIN_LINE.fullmatch(line) if line.isascii() else None
    if plain is None:
        return parse_entry(line)
    *values, stored = plain.groups()
    canonical = b'["leasehold-audit-v1",' + b",".join(values) + b"]"
    return int(values[0]), values[2][1:-1].decode("ascii"), canonical, stored[1:-1]


def parse_entry(line: bytes) -> Entry:
    try:
        entry = from_json(line.decode("utf-8"))
        if type(entry) is not dict or entry.keys() not in (KEYS, USE_KEYS):
            raise ValueError("its keys are not those of an audit entry")
        values = canonical_fields(entry)
        # type(), not isinstance(): True would pass for an integer.
        if list(map(type, values[: len(REQUIRED)])) != REQUIRED_TYPES:
            raise ValueError("a field has the wrong type")
        if not NULLABLE_TYPES.issuperset(map(type, values[len(REQUIRED) :])) or type(entry["hmac"]) is not str:
            raise ValueError("a field has the wrong type")
        if entry.keys() == KEYS:
            array = ("leasehold-audit-v1", *values)
        else:
            use = use_fields(entry)
            texts, numbers = [*use[: len(USE_TEXTS)], use[-1]], use[len(USE_TEXTS) : -1]
            if not NULLABLE_TYPES.issuperset(map(type, texts)) or not NULLABLE_NUMBERS.issuperset(map(type, numbers)):
                raise ValueError("a field has the wrong type")
            array = ("leasehold-audit-v2", *values, *use)
        canonical = to_json(array).encode("utf-8")
        return values[0], values[2], canonical, entry["hmac"].encode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except UnicodeEncodeError:
        raise ValueError("it has a lone surrogate") from None
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("it is not JSON") from None


def verify(export: BinaryIO, keyed: hmac.HMAC, head: Head | None) -> dict[str, Any]:
    """Returns the result for an intact chain. Raises Broken at the first invalid entry."""
    progress = sys.stderr is not None and sys.stderr.isatty()
    last, last_time, last_hmac = 0, "", GENESIS
    first_time = after_head = None
    while True:
        try:
            line = export.readline(LINE_LIMIT + 1)
        except OSError as problem:
            raise CannotTell(f"the export cannot be read ({problem.strerror})") from None
        if not line:
            break
        expected = last + 1
        try:
            seq, timestamp, canonical, stored = read_entry(line)
        except ValueError as problem:
            raise CannotTell(f"line {expected} of the export is not an audit entry: {problem}") from None
        if seq != expected:
            raise Broken(expected, timestamp, f"it is missing, and entry {seq} follows")
        if timestamp < last_time:
            raise Broken(seq, timestamp, "it is older than the entry before it")
        computed = mac(keyed, last_hmac + canonical)
        if not hmac.compare_digest(base64.b64encode(computed), stored):
            hint = ", or the key is not this log's audit key" if seq == 1 else ""
            raise Broken(seq, timestamp, f"it was altered, or what came before it was{hint}")
        last, last_time, last_hmac = seq, timestamp, computed
        if seq == 1:
            first_time = timestamp
        if head is not None and seq == head.seq + 1:
            after_head = timestamp
        if progress and seq % 50_000 == 0:
            print(f"{seq:,} entries checked", end="\r", file=sys.stderr, flush=True)

    last_entry = last_time if last else None
    if head is not None:
        check_head(head, keyed, last, last_entry, last_hmac, after_head)
    elif not last:
        raise CannotTell("the export is empty, and without its head record that proves nothing")
    return {"valid": True, "entries": last, "first_entry": first_time, "last_entry": last_entry}


def check_head(
    head: Head, keyed: hmac.HMAC, last: int, last_entry: str | None, last_hmac: bytes, after_head: str | None
) -> None:
    sealed = to_json(("leasehold-head-v1", head.seq, head.hmac)).encode("utf-8")
    if not hmac.compare_digest(base64.b64encode(mac(keyed, sealed)), head.mac.encode("utf-8")):
        raise Broken(last + 1, last_entry, "the head record, which says where the log ends, is not authentic")
    if head.seq > last:
        raise Broken(last + 1, last_entry, f"it is missing, and the head record names {head.seq} entries")
    if head.seq < last:
        raise Broken(head.seq + 1, after_head, f"the head record names only {head.seq} entries")
    if not hmac.compare_digest(base64.b64encode(last_hmac), head.hmac.encode("utf-8")):
        raise Broken(last, last_entry, "the head record names another last entry")


def read_small_file(path: str, what: str) -> bytes:
    # Errors do not repeat the name, because a user may give the key itself instead of its file.
    try:
        with open(path, "rb") as file:
            content = file.read(SMALL_FILE_LIMIT + 1)
    except (OSError, ValueError) as problem:
        raise CannotTell(f"{what} cannot be read ({getattr(problem, 'strerror', 'bad name')})") from None
    if len(content) > SMALL_FILE_LIMIT:
        raise CannotTell(f"{what} is too long")
    return content


def read_key(path: str | None) -> bytes:
    if path is None:
        text = os.fsencode(os.environ.get(KEY_VARIABLE, ""))
    else:
        text = read_small_file(path, "the key file")
    if not text:
        raise CannotTell(f"the audit key is missing; give --key-file, or set {KEY_VARIABLE}")
    text = re.sub(rb"\r?\n\Z", b"", text)
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != 32 or base64.b64encode(key) != text:
        raise CannotTell("the audit key is malformed; it is one line, 32 bytes as base64 (44 characters)")
    return key


def read_head(text: bytes) -> Head:
    words = text.split()
    if not text.isascii() or len(words) != 3 or not DECIMAL.fullmatch(words[0].decode("ascii")):
        raise CannotTell("the head record is malformed; it is three words, SEQ HMAC MAC")
    seq, last_hmac, head_mac = (word.decode("ascii") for word in words)
    return Head(int(seq), last_hmac, head_mac)


def read_head_file(path: str) -> Head:
    """Reads a file with the three words, or with the response headers as `curl -D` writes them."""
    text = read_small_file(path, "the head file")
    found = [line[len(HEAD_HEADER) :] for line in text.splitlines() if line.lower().startswith(HEAD_HEADER)]
    if len(found) > 1:
        raise CannotTell("the head file has more than one Leasehold-Audit-Head header")
    return read_head(found[0] if found else text)


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # argparse would repeat an unknown argument, and that may be the key.
        if message.startswith("unrecognized arguments"):
            message = "unknown argument"
        super().error(message)


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = Parser(
        description="Verify an export of a Leasehold audit log, independently of the service.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("export", metavar="EXPORT", help="the export, newline-delimited JSON; - for standard input")
    parser.add_argument("--key-file", metavar="FILE", help="file with the audit key as base64")
    head = parser.add_mutually_exclusive_group()
    head.add_argument("--head", metavar='"SEQ HMAC MAC"', help="the head record: the Leasehold-Audit-Head header")
    head.add_argument("--head-file", metavar="FILE", help="the same in a file, alone or as written by curl -D")
    return parser.parse_args(argv)


def say(sentence: str) -> None:
    if sys.stderr is not None:  # print() would fall back to standard output
        print(sentence, file=sys.stderr, flush=True)


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    key = read_key(arguments.key_file)
    head = None
    if arguments.head is not None:
        head = read_head(os.fsencode(arguments.head))
    elif arguments.head_file is not None:
        head = read_head_file(arguments.head_file)
    try:
        export = sys.stdin.buffer if arguments.export == "-" else open(arguments.export, "rb")
    except (OSError, ValueError) as problem:
        raise CannotTell(f"the export cannot be read ({getattr(problem, 'strerror', 'bad name')})") from None
    verdict: dict[str, Any]
    try:
        verdict = verify(export, hmac.new(key, digestmod="sha256"), head)
        status = VALID
        if head is None:
            say("Note: without the head record (--head or --head-file), an end that was cut off cannot be seen.")
    except Broken as broken:
        verdict = {
            "valid": False,
            "break_at_entry": broken.entry,
            "break_at_timestamp": broken.timestamp,
            "message": f"The audit chain is broken at entry {broken.entry}: {broken.why}.",
        }
        status = BROKEN
    sys.stdout.write(json.dumps(verdict) + "\n")
    return status


def guarded(argv: list[str]) -> int:
    """main(), with every failure turned into 2: Python would exit 1 for an exception, and that means broken."""
    try:
        try:
            status = main(argv)
        except SystemExit as stop:  # argparse: 0 after --help, 2 otherwise
            status = 0 if stop.code == 0 else CANNOT_TELL
        sys.stdout.flush()  # a verdict that did not get out is none
        return status
    except CannotTell as problem:
        reason = str(problem)
    except BaseException as problem:  # KeyboardInterrupt and MemoryError too
        reason = f"stopped by {type(problem).__name__}"
    try:
        say(f"Cannot tell: {reason}.")
    except Exception:
        pass  # standard error is closed; the exit status still tells the result
    return CANNOT_TELL


if __name__ == "__main__":
    # Not sys.exit(): the interpreter's own clean-up can still change the status, to 120.
    os._exit(guarded(sys.argv[1:]))
