#!/usr/bin/env python3
"""Verify an export of a Leasehold audit log, or a receipt of one entry, without Leasehold. Needs only Python 3.8 or
newer. SOURCE: docs/formats.md, "The audit log"; https://c2sp.org/signed-note, tlog-checkpoint and tlog-proof.

The export is newline-delimited JSON, oldest entry first. Each entry's hmac is

    base64(HMAC-SHA256(audit key, previous hmac as 32 bytes || canonical bytes))

where the first entry follows 32 zero bytes, and the canonical bytes are one JSON array without white space: a format,
and the fields in the order of FIELDS, USE_FIELDS and STATE_FIELDS, null where the entry lacks one. The head record names the last entry, so that a
truncated log is detected too. An entry "key.rotate_audit" is the last one under its key, and authenticates the next.

A checkpoint is a signed note that says which root the tree of the first entries has; a log that does not extend each
given checkpoint was cut or replaced. A receipt proves that an hmac is in the tree of a checkpoint. Both are verified
with the public key alone, which says nothing about what the entries contain: that takes the audit key.

It stops at the first break and ignores all lines after it.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
import hashlib
import hmac
import json
import os
import re
import sys
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, NoReturn, Optional, Set, Tuple

VALID, BROKEN, CANNOT_TELL = 0, 1, 2

# The fields in the order of the canonical bytes, each with the types of its values.
Fields = Dict[str, Set[type]]
TEXT, NULLABLE_TEXT, NULLABLE_NUMBER = {str}, {str, type(None)}, {int, type(None)}
FIELDS: Fields = {
    "seq": {int},
    **dict.fromkeys(("id", "timestamp", "event_type", "agent_name", "resource", "action", "result"), TEXT),
    **dict.fromkeys(("policy_name", "lease_id", "code", "reason", "request_id", "remote_addr"), NULLABLE_TEXT),
}
USE_FIELDS: Fields = {
    **dict.fromkeys(("method", "host", "target_path"), NULLABLE_TEXT),
    **dict.fromkeys(("status", "bytes_in", "bytes_out", "redactions"), NULLABLE_NUMBER),
    "ended": NULLABLE_TEXT,
}
STATE_FIELDS: Fields = dict.fromkeys(("subject", "state"), NULLABLE_TEXT)
HMAC_FIELD: Fields = {"hmac": TEXT}

FORMAT = "leasehold-audit-v1"
COVERED = (*FIELDS, *USE_FIELDS, *STATE_FIELDS)
ROTATION = "key.rotate_audit"
GENESIS, EMPTY_ROOT = bytes(32), hashlib.sha256(b"").digest()
HAND_OVER = b"next audit key: "
LINE_LIMIT, SMALL_FILE_LIMIT, MAX_SIGNATURES = 1 << 20, 1 << 16, 16
DECIMAL = re.compile(r"0|[1-9][0-9]{0,15}")  # 16 digits, as in the largest integer that JavaScript keeps exact
HEAD_HEADER = b"leasehold-audit-head:"
KEY_VARIABLE = "LEASEHOLD_AUDIT_KEY"
INDEX_LINE = re.compile(rb"index (0|[1-9][0-9]{0,15})")
SIGNATURE_LINE = re.compile(r"\u2014 ([^\s+]+) ([A-Za-z0-9+/]+=*)")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")

Point = Tuple[int, int, int, int]

EXAMPLE = f"""\
example:
  python3 verify_audit.py audit.ndjson --key-file audit.key --head-file head.txt
  python3 verify_audit.py audit.ndjson --public-key-file log.pub --checkpoint checkpoints.log
  python3 verify_audit.py --receipt entry.tlog-proof --public-key-file log.pub
  python3 verify_audit.py --consistency proof.json --public-key-file log.pub \\
    --checkpoint old.txt --checkpoint new.txt

The key file contains one line, the 32-byte audit key as base64; after a rotation one
line for each key, beginning with the number of its first entry. Without --key-file
the key is read from {KEY_VARIABLE}, never from the command line. With checkpoints
it may be missing: then the hmacs are verified, and not what the entries contain.
The public key file contains verifier keys, NAME+ID+KEY, one on a line.
The result is one JSON object on standard output; errors go to standard error.

exit status: 0 the chain, receipt or proof is valid, 1 it is not, 2 cannot tell (nothing on standard output)
"""


class CannotTell(Exception):
    """The export, key or head record is malformed or unreadable, so the state of the chain is unknown."""


class Forged(Exception):
    """The note, receipt or proof is well-formed, but it proves nothing under the given public keys."""


class Broken(Exception):
    """The export is well-formed, but it is not the log that the service wrote: the entry, its timestamp, and why."""


# seq, timestamp, canonical bytes, and the hmac's text as the export has it, because a second base64 encoding of the
# same bytes is a forgery. Last, for an entry with which an audit key ends: its canonical bytes without the reason, and
# the reason.
Entry = Tuple[int, str, bytes, bytes, Optional[Tuple[bytes, bytes]]]
Keys = Dict[int, bytes]  # by the number of the first entry


@contextlib.contextmanager
def reading(what: str, form: str) -> Iterator[None]:
    """For what cannot be read or does not have that form. The message repeats nothing: a user may give the key itself
    instead of its file."""
    try:
        yield
    except OSError as problem:
        raise CannotTell(f"{what} cannot be read ({problem.strerror})") from None
    except (ValueError, AttributeError, LookupError, TypeError, RecursionError):
        raise CannotTell(f"{what} is malformed; {form}") from None


Head = NamedTuple("Head", [("seq", int), ("hmac", str), ("mac", str), ("canonical", bytes), ("tree", str)])


# ---------- The Merkle tree and its proofs ---------------------------------------------------------------------------
def digest(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def leaf_hash(leaf: bytes) -> bytes:
    return hashlib.sha256(b"\0" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


class Tree:
    """The roots of the complete subtrees of a Merkle tree, the largest first. SOURCE: RFC 6962, section 2.1."""

    def __init__(self) -> None:
        self.size = 0
        self.peaks: list[bytes] = []

    def append(self, leaf: bytes) -> None:
        node = leaf_hash(leaf)
        rest = self.size
        while rest & 1:
            node = node_hash(self.peaks.pop(), node)
            rest >>= 1
        self.peaks.append(node)
        self.size += 1

    def root(self) -> bytes:
        if not self.peaks:
            return EMPTY_ROOT
        return functools.reduce(lambda root, peak: node_hash(peak, root), reversed(self.peaks))

    def text(self) -> str:
        return base64.b64encode(b"".join(self.peaks)).decode("ascii")


def climb(at: int, last: int, start: bytes, proof: list[bytes]) -> tuple[bytes, bytes] | None:
    """Follows a proof from the node `at` of a row that ends with the node `last`. Returns the root of the tree up to
    that node, and of the whole tree; None if the proof has the wrong length. SOURCE: RFC 9162, section 2.1.4.2."""
    old_root = new_root = start
    for node in proof:
        if last == 0:
            return None
        if at & 1 or at == last:
            old_root, new_root = node_hash(node, old_root), node_hash(node, new_root)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            new_root = node_hash(new_root, node)
        at, last = at >> 1, last >> 1
    return (old_root, new_root) if last == 0 else None


def root_of_inclusion(leaf: bytes, index: int, size: int, proof: list[bytes]) -> bytes | None:
    """The root that the proof leads to; None if its length is wrong. SOURCE: RFC 9162, section 2.1.3.2."""
    roots = climb(index, size - 1, leaf_hash(leaf), proof) if index < size else None
    return roots and roots[1]


def is_consistent(older: Checkpoint, newer: Checkpoint, proof: list[bytes]) -> bool:
    """Whether the newer tree extends the older one. SOURCE: RFC 9162, section 2.1.4.2."""
    if older.size in (0, newer.size):
        return not proof and older.root == (newer.root if older.size == newer.size else EMPTY_ROOT)
    if older.size > newer.size or not proof:
        return False
    if older.size & (older.size - 1) == 0:
        proof = [older.root, *proof]
    at, last = older.size - 1, newer.size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    return climb(at, last, proof[0], proof[1:]) == (older.root, newer.root)


# ---------- Signatures, checkpoints and receipts ---------------------------------------------------------------------
class Ed25519:
    """A public key, which verifies signatures. SOURCE: RFC 8032, sections 5.1.3, 5.1.4 and 5.1.7."""

    P = 2**255 - 19
    ORDER = 2**252 + 27742317777372353535851937790883648493
    D = -121665 * pow(121666, -1, P) % P
    ROOT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)
    NEUTRAL = (0, 1, 1, 0)  # in extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, x*y = T/Z

    def __init__(self, public_key: bytes) -> None:
        x, y, z, t = self.decode(public_key)
        self.public_key = public_key
        self.base = self.doublings(self.decode(b"\x58" + b"\x66" * 31))
        self.minus_key = self.doublings((-x % self.P, y, z, -t % self.P))

    def verify(self, message: bytes, signature: bytes) -> bool:
        encoded_r, s = signature[:32], int.from_bytes(signature[32:], "little")
        if len(signature) != 64 or s >= self.ORDER:
            return False
        digest = hashlib.sha512(encoded_r + self.public_key + message).digest()
        k = int.from_bytes(digest, "little") % self.ORDER
        # R = [s]B - [k]A, without the cofactor and compared as bytes, as OpenSSL and Go do.
        r = self.add(self.multiply(self.base, s), self.multiply(self.minus_key, k))
        return self.encode(r) == encoded_r

    def add(self, p: Point, q: Point) -> Point:
        a = (p[1] - p[0]) * (q[1] - q[0]) % self.P
        b = (p[1] + p[0]) * (q[1] + q[0]) % self.P
        c = 2 * p[3] * q[3] * self.D % self.P
        d = 2 * p[2] * q[2] % self.P
        e, f, g, h = b - a, d - c, d + c, b + a
        return e * f % self.P, g * h % self.P, f * g % self.P, e * h % self.P

    def doublings(self, point: Point) -> list[Point]:
        """The point times 1, 2, 4 and so on, for each bit of a scalar."""
        points = [point]
        while len(points) < 256:
            points.append(self.add(points[-1], points[-1]))
        return points

    def multiply(self, doublings: list[Point], scalar: int) -> Point:
        result = self.NEUTRAL
        for bit, point in enumerate(doublings):
            if scalar >> bit & 1:
                result = self.add(result, point)
        return result

    def encode(self, point: Point) -> bytes:
        inverse = pow(point[2], -1, self.P)
        x, y = point[0] * inverse % self.P, point[1] * inverse % self.P
        return (y | (x & 1) << 255).to_bytes(32, "little")

    def decode(self, encoded: bytes) -> Point:
        """Raises ValueError if the bytes are not the canonical encoding of a point on the curve."""
        number = int.from_bytes(encoded, "little")
        sign, y = number >> 255, number & (1 << 255) - 1
        square = (y * y - 1) * pow(self.D * y * y + 1, -1, self.P) % self.P
        x = pow(square, (self.P + 3) // 8, self.P)
        if (x * x - square) % self.P:
            x = x * self.ROOT_OF_MINUS_1 % self.P
        if y >= self.P or (x * x - square) % self.P or (x == 0 and sign):
            raise ValueError("it is not a point")
        if x & 1 != sign:
            x = self.P - x
        return x, y, 1, x * y % self.P


Verifier = NamedTuple("Verifier", [("name", str), ("key_id", bytes), ("key", Ed25519)])
Checkpoint = NamedTuple("Checkpoint", [("origin", str), ("size", int), ("root", bytes)])
Receipt = NamedTuple("Receipt", [("index", int), ("hmac", bytes), ("proof", List[bytes]), ("checkpoint", bytes)])


def strict_base64(text: bytes, length: int | None = None) -> bytes:
    """Raises ValueError if the text is not what encoding its bytes gives, or if they are not as many."""
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        found = b""
    if not found or base64.b64encode(found) != text or length not in (None, len(found)):
        raise ValueError("it has malformed base64")
    return found


def read_verifier(line: bytes) -> Verifier:
    """Parses NAME+ID+KEY, where ID is the first four bytes of SHA-256(NAME || 0x0A || key), and the key 0x01 and the
    32 bytes of an Ed25519 key. Raises ValueError."""
    name, key_id, text = line.split(b"+", 2)
    key = strict_base64(text, 33)
    expected = hashlib.sha256(name + b"\n" + key).digest()[:4]
    if key[0] != 1 or expected.hex().encode() != key_id:
        raise ValueError("it is not a verifier key")
    return Verifier(name.decode("utf-8"), expected, Ed25519(key[1:]))


def open_note(note: bytes, verifiers: list[Verifier]) -> tuple[str, set[str]]:
    """Returns the text, and the names of the verifiers whose keys have signed it, at least one. Raises ValueError if it
    is not a signed note, and Forged if none has signed it, or a signature of one is not valid."""
    try:
        body, gap, tail = note.decode("utf-8").rpartition("\n\n")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    text, lines = body + "\n", tail.split("\n")
    if not gap or lines.pop() or not 0 < len(lines) <= MAX_SIGNATURES or CONTROL.search(body + tail):
        raise ValueError("it is not a signed note")
    signers = set()
    for line in lines:
        found = SIGNATURE_LINE.fullmatch(line)
        signature = strict_base64(found[2].encode()) if found else b""
        if found is None or len(signature) < 5:
            raise ValueError("it has a malformed signature line")
        for verifier in verifiers:
            if (verifier.name, verifier.key_id) == (found[1], signature[:4]):
                if not verifier.key.verify(text.encode(), signature[4:]):
                    raise Forged("its signature is not valid")
                signers.add(verifier.name)
    if not signers:
        raise Forged("it is not signed by the log's key")
    return text, signers


def open_checkpoint(note: bytes, verifiers: list[Verifier]) -> Checkpoint:
    """As open_note. Raises ValueError if the text is not a checkpoint's, and Forged if it is that of another log."""
    text, signers = open_note(note, verifiers)
    origin, size, root = (text.split("\n") + ["", ""])[:3]
    if not DECIMAL.fullmatch(size) or int(size) >= 1 << 53:
        raise ValueError("it is not a checkpoint")
    if origin not in signers:
        raise Forged("it is a checkpoint of another log")
    return Checkpoint(origin, int(size), strict_base64(root.encode(), 32))


def read_receipt(text: bytes) -> Receipt:
    """Raises ValueError if it is not a receipt. Checks no signature and no hash."""
    head, gap, note = text.partition(b"\n\n")
    first, extra, index, *proof = head.split(b"\n") + ([b""] * 2 if head.count(b"\n") < 2 else [])
    if not gap or first != b"c2sp.org/tlog-proof@v1" or extra[:6] != b"extra " or not INDEX_LINE.fullmatch(index):
        raise ValueError("it is not a receipt")
    return Receipt(int(index[6:]), strict_base64(extra[6:], 32), [strict_base64(line, 32) for line in proof], note)


# ---------- Entries and the head record ------------------------------------------------------------------------------
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


def plain_line() -> re.Pattern[bytes]:
    """Matches a line as the service writes it, if no string in it has an escape: its text is then canonical already, so
    that most lines need no parsing, which would take twice as long as all the rest."""
    kinds = {int: "[1-9][0-9]{0,15}", str: r'"[^"\\\x00-\x1f]*"', type(None): "null"}
    fields = {**FIELDS, **HMAC_FIELD}.items()
    shape = ",".join(f'"{name}":({"|".join(kinds[kind] for kind in allowed)})' for name, allowed in fields)
    return re.compile(f"{{{shape}}}\n".encode())


PLAIN_LINE = plain_line()
PLAIN_START = f'["{FORMAT}",'.encode()
PLAIN_END = b",null" * (len(USE_FIELDS) + len(STATE_FIELDS)) + b"]"


def canonical_bytes(entry: dict[str, Any]) -> bytes:
    return to_json([FORMAT, *(entry.get(name) for name in COVERED)]).encode("utf-8")


def read_entry(line: bytes) -> Entry:
    """Parses one line strictly. Raises ValueError with the reason if it is not an entry."""
    is_plain = line.isascii() and len(line) <= LINE_LIMIT and ROTATION.encode() not in line
    plain = PLAIN_LINE.fullmatch(line) if is_plain else None
    if plain is not None:
        *values, stored = plain.groups()
        canonical = PLAIN_START + b",".join(values) + PLAIN_END
        return int(values[0]), values[2][1:-1].decode("ascii"), canonical, stored[1:-1], None
    if len(line) > LINE_LIMIT:
        raise ValueError("it is longer than 1 MiB")
    if not line.endswith(b"\n"):
        raise ValueError("it has no end, so the export was cut short")
    try:
        entry = from_json(line.decode("utf-8"))
        has_use, has_state = ("method" in entry, "state" in entry) if type(entry) is dict else (False, False)
        fields = {**FIELDS, **(USE_FIELDS if has_use else {}), **(STATE_FIELDS if has_state else {}), **HMAC_FIELD}
        if type(entry) is not dict or entry.keys() != fields.keys():
            raise ValueError("its keys are not those of an audit entry")
        # type(), not isinstance(): True would pass for an integer.
        if any(type(entry[name]) not in kinds for name, kinds in fields.items()):
            raise ValueError("a field has the wrong type")
        end = None
        if entry["event_type"] == ROTATION and entry["result"] == "allowed":
            end = canonical_bytes({**entry, "reason": None}), str(entry["reason"]).encode("utf-8")
        return entry["seq"], entry["timestamp"], canonical_bytes(entry), entry["hmac"].encode("utf-8"), end
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except UnicodeEncodeError:
        raise ValueError("it has a lone surrogate") from None
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("it is not JSON") from None


# ---------- The chain ------------------------------------------------------------------------------------------------
def verify(export: BinaryIO, keys: Keys, head: Head | None, signed: dict[int, Checkpoint]) -> dict[str, Any]:
    """Returns the result for an intact chain. Raises Broken at the first invalid entry. The audit keys are given by the
    number of their first entry, and the checkpoints, which the log has to extend, by their size."""
    progress = sys.stderr is not None and sys.stderr.isatty()
    last, last_time, last_hmac = 0, "", GENESIS
    tree, has_tree = Tree(), bool(signed) or head is not None
    first_time = after_head = head_tree = None
    key, unverified, last_unverified, key_of_head = keys.get(1), 0, 0, keys.get(1)
    check_root(signed, tree, None)
    while True:
        with reading("the export", "its lines are JSON"):
            line = export.readline(LINE_LIMIT + 1)
        if not line:
            break
        expected = last + 1
        try:
            seq, timestamp, canonical, stored, end = read_entry(line)
            computed = strict_base64(stored, 32) if key is None else digest(key, last_hmac + canonical)
        except ValueError as problem:
            raise CannotTell(f"line {expected} of the export is not an audit entry: {problem}") from None
        if seq != expected:
            raise Broken(expected, timestamp, f"it is missing, and entry {seq} follows")
        if timestamp < last_time:
            raise Broken(seq, timestamp, "it is older than the entry before it")
        if key is None:
            unverified, last_unverified = unverified + 1, seq
        if key is not None and not hmac.compare_digest(base64.b64encode(computed), stored):
            hint = ", or the key is not this log's audit key" if seq == 1 else ""
            raise Broken(seq, timestamp, f"it was altered, or what came before it was{hint}")
        if end is not None or seq + 1 in keys:
            key = keys.get(seq + 1)
            if key is not None:
                check_hand_over(key, last_hmac, end, seq, timestamp)
        last, last_time, last_hmac = seq, timestamp, computed
        if has_tree:
            tree.append(computed)
            check_root(signed, tree, timestamp)
        if seq == 1:
            first_time = timestamp
        if head is not None and seq < head.seq:
            key_of_head = key  # the head record after the last entry under a key is still under that key
        if head is not None and seq == head.seq:
            head_tree = tree.text()
        if head is not None and seq == head.seq + 1:
            after_head = timestamp
        if progress and seq % 50_000 == 0:
            print(f"{seq:,} entries checked", end="\r", file=sys.stderr, flush=True)

    last_entry = last_time if last else None
    if head is not None and key_of_head is not None:
        check_head(head, key_of_head, last, last_entry, last_hmac, after_head, head_tree or "")
    elif head is not None:
        raise CannotTell("the audit key of the head record was not given; give all keys of the log")
    newest = max(signed, default=0)
    if newest > last:
        raise Broken(last + 1, last_entry, f"it is missing, and a checkpoint was signed for {newest} entries")
    if head is None and not last:
        raise CannotTell("the export is empty, and without its head record that proves nothing")
    if keys and last_unverified > newest:
        raise CannotTell(f"the audit key of {unverified} entries was not given; give all keys of the log")
    if keys and max(keys) - 1 > last:
        raise CannotTell(f"an audit key begins at entry {max(keys)}, and the export ends at {last}; it is cut or older")
    if unverified > 0:
        more = "" if keys or last <= newest else f", and no checkpoint covers the entries after {newest}"
        say(f"Note: the audit key of {unverified} entries was not given, so only their hmacs were verified{more}.")
    verdict = {"valid": True, "entries": last, "first_entry": first_time, "last_entry": last_entry}
    if signed or unverified:
        verdict["chain"] = unverified == 0
    return {**verdict, "signed_entries": newest} if signed else verdict


def check_root(signed: dict[int, Checkpoint], tree: Tree, timestamp: str | None) -> None:
    size = tree.size
    if size in signed and tree.root() != signed[size].root:
        raise Broken(size, timestamp, f"the first {size} entries are not those of a signed checkpoint")


def check_hand_over(key: bytes, last_hmac: bytes, end: tuple[bytes, bytes] | None, seq: int, timestamp: str) -> None:
    if end is None:
        raise Broken(seq, timestamp, "the audit key changes after it, but it does not say so")
    without, reason = end
    if not hmac.compare_digest(HAND_OVER + base64.b64encode(digest(key, last_hmac + without)), reason):
        raise Broken(seq, timestamp, "it does not authenticate the next audit key")


def check_head(
    head: Head, key: bytes, last: int, last_entry: str | None, last_hmac: bytes, after: str | None, tree: str
) -> None:
    if not hmac.compare_digest(base64.b64encode(digest(key, head.canonical)), head.mac.encode("utf-8")):
        raise Broken(last + 1, last_entry, "the head record, which says where the log ends, is not authentic")
    if head.seq > last:
        raise Broken(last + 1, last_entry, f"it is missing, and the head record names {head.seq} entries")
    if head.seq < last:
        raise Broken(head.seq + 1, after, f"the head record names only {head.seq} entries")
    if not hmac.compare_digest(base64.b64encode(last_hmac), head.hmac.encode("utf-8")):
        raise Broken(last, last_entry, "the head record names another last entry")
    if head.tree != tree:
        raise Broken(last, last_entry, "the head record has another Merkle tree")


# ---------- Input files ----------------------------------------------------------------------------------------------
def read_small_file(path: str, what: str) -> bytes:
    with reading(what, "its name is not valid"), open(path, "rb") as file:
        content = file.read(SMALL_FILE_LIMIT + 1)
    if len(content) > SMALL_FILE_LIMIT:
        raise CannotTell(f"{what} is too long")
    return content


def read_keys(path: str | None, is_needed: bool) -> Keys:
    """The keys in the file, or else in the environment; none if none is needed."""
    text = os.fsencode(os.environ.get(KEY_VARIABLE, "")) if path is None else read_small_file(path, "the key file")
    if not text and (is_needed or path is not None):
        raise CannotTell(f"the audit key is missing; give --key-file, or set {KEY_VARIABLE}")
    keys: Keys = {}
    for line in re.sub(rb"\r?\n\Z", b"", text).splitlines() or ([b""] if text else []):
        # After a rotation each line begins with the first entry of its key.
        first, space, encoded = line.rpartition(b" ")
        with reading("the audit key", "it is one line, 32 bytes as base64 (44 characters)"):
            if space and (not DECIMAL.fullmatch(first.decode("ascii")) or first == b"0"):
                raise ValueError
            keys[int(first or b"1")] = strict_base64(encoded, 32)
    return keys


def read_head(given: argparse.Namespace) -> Head | None:
    """The words of the head record: given, alone in a file, or in the response headers as `curl -D` writes them."""
    if given.head is None and given.head_file is None:
        return None
    text = os.fsencode(given.head) if given.head_file is None else read_small_file(given.head_file, "the head file")
    found = [line[len(HEAD_HEADER) :] for line in text.splitlines() if line.lower().startswith(HEAD_HEADER)]
    if len(found) > 1:
        raise CannotTell("the head file has more than one Leasehold-Audit-Head header")
    with reading("the head record", "it is six words, SEQ HMAC MAC EPOCH TREE CONTROL"):
        words = (found[0] if found else text).decode("ascii").split()
        seq, last_hmac, head_mac, epoch, tree, control = ("" if word == "-" else word for word in words)
        if not DECIMAL.fullmatch(seq) or not DECIMAL.fullmatch(epoch):
            raise ValueError
        fields = ["leasehold-head-v2", int(seq), last_hmac, int(epoch), tree, control]
        return Head(int(seq), last_hmac, head_mac, to_json(fields).encode(), tree)


def read_verifiers(path: str) -> list[Verifier]:
    text = read_small_file(path, "the public key file")
    with reading("the public key file", "each line is NAME+ID+KEY"):
        return [read_verifier(line) for line in re.sub(rb"\n\Z", b"", text).split(b"\n")]


def read_texts(path: str, what: str, name: str) -> Iterator[bytes]:
    """Yields the file as it is, or if it is JSON, the text of that name in each line's object, or in its `data`."""
    with reading(what, f'it is a text, or JSON with "{name}" on each line'), open(path, "rb") as file:
        if file.read(1) != b"{":
            yield read_small_file(path, what)
            return
        file.seek(0)
        while line := file.readline(LINE_LIMIT):
            if not line.rstrip().endswith(b"}"):
                say(f"Note: {what} has an incomplete line, as a crash leaves it; it was skipped.")
                continue
            value = from_json(line.decode("utf-8"))
            yield value.get("data", value).get(name).encode("utf-8")


def read_checkpoints(given: argparse.Namespace) -> list[Checkpoint]:
    verifiers = read_verifiers(given.public_key_file) if given.checkpoint else []
    found = []
    for path in given.checkpoint:
        for number, note in enumerate(list(read_texts(path, "the checkpoint file", "note")), 1):
            try:
                found.append(open_checkpoint(note, verifiers))
            except (ValueError, Forged) as problem:
                raise CannotTell(f"checkpoint {number} of a checkpoint file proves nothing: {problem}") from None
    if given.checkpoint and not found:
        raise CannotTell("the checkpoint files have no checkpoint")
    return found


# ---------- The command ----------------------------------------------------------------------------------------------
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
    add = parser.add_argument
    add("export", metavar="EXPORT", nargs="?", help="the export, newline-delimited JSON; - for standard input")
    add("--key-file", metavar="FILE", help="file with the audit key as base64")
    head = parser.add_mutually_exclusive_group()
    head.add_argument("--head", metavar='"SEQ HMAC MAC ..."', help="the head record: the Leasehold-Audit-Head header")
    head.add_argument("--head-file", metavar="FILE", help="the same in a file, alone or as written by curl -D")
    add("--public-key-file", metavar="FILE", help="file with verifier keys of the log's checkpoints")
    several = "a checkpoint, or JSON with a note on each line, as in checkpoints.log; may be repeated"
    add("--checkpoint", metavar="FILE", action="append", default=[], help=several)
    add("--receipt", metavar="FILE", help="verify a receipt instead of an export")
    add("--entry", metavar="FILE", help="the receipt's entry: its line, and the one before it")
    add("--consistency", metavar="FILE", help="verify that the second checkpoint extends the first one")
    given = parser.parse_args(argv)
    export, receipt, consistency = (each is not None for each in (given.export, given.receipt, given.consistency))
    has_key, has_public_key = given.key_file is not None, given.public_key_file is not None
    has_head = given.head is not None or given.head_file is not None
    needs_public_key = not export or bool(given.checkpoint)
    for is_broken, rule in (
        (export + receipt + consistency != 1, "give one of EXPORT, --receipt and --consistency"),
        (has_public_key and not needs_public_key, "--public-key-file belongs to checkpoints, receipts and proofs"),
        (needs_public_key and not has_public_key, "checkpoints, receipts and proofs need --public-key-file"),
        (given.entry is not None and not receipt, "--entry belongs to --receipt"),
        (has_head and not export, "the head record belongs to an export"),
        (given.checkpoint and receipt, "a receipt contains its checkpoint; give no other one"),
        (consistency and len(given.checkpoint) != 2, "--consistency needs two checkpoints, the older one first"),
        (has_key and not export and given.entry is None, "--key-file belongs to an export, or to --entry"),
    ):
        if is_broken:
            parser.error(rule)
    return given


def say(sentence: str) -> None:
    if sys.stderr is not None:  # print() would fall back to standard output
        print(sentence, file=sys.stderr, flush=True)


def verify_export(given: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    keys = read_keys(given.key_file, not given.checkpoint)
    head = read_head(given)
    if head is not None and not keys:
        raise CannotTell("the head record can only be verified with the audit key; give --key-file")
    signed: dict[int, Checkpoint] = {}
    try:
        for checkpoint in read_checkpoints(given):
            size = checkpoint.size
            if signed.setdefault(size, checkpoint).root != checkpoint.root:
                raise Broken(size, None, f"two signed checkpoints of {size} entries have different roots")
        with reading("the export", "its name is not valid"):
            export = sys.stdin.buffer if given.export == "-" else open(given.export, "rb")
        verdict = verify(export, keys, head, signed)
    except Broken as broken:
        entry, timestamp, why = broken.args
        message = f"The audit chain is broken at entry {entry}: {why}."
        return BROKEN, {"valid": False, "break_at_entry": entry, "break_at_timestamp": timestamp, "message": message}
    if head is None:
        where = "after the newest checkpoint " if signed else ""
        say(f"Note: without the head record (--head or --head-file), an end that was cut off {where}cannot be seen.")
    return VALID, verdict


def verify_receipt(given: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    verifiers = read_verifiers(given.public_key_file)
    texts = list(read_texts(given.receipt, "the receipt", "receipt"))
    if len(texts) != 1:
        raise CannotTell("the receipt file does not have exactly one receipt")
    try:
        receipt = read_receipt(texts[0])
        checkpoint = open_checkpoint(receipt.checkpoint, verifiers)
        if root_of_inclusion(receipt.hmac, receipt.index, checkpoint.size, receipt.proof) != checkpoint.root:
            raise Forged("its proof does not lead to the root of its checkpoint")
        has_content = check_entry(given, receipt) if given.entry is not None else False
    except ValueError as problem:
        raise CannotTell(f"the receipt is malformed: {problem}") from None
    except Forged as problem:
        return BROKEN, {"valid": False, "message": f"The receipt is not valid: {problem}."}
    if not has_content:
        say("Note: the receipt proves an hmac; that the entry contains what it says takes the audit key to verify.")
    proven = {"entry": receipt.index + 1, "hmac": base64.b64encode(receipt.hmac).decode("ascii")}
    signed = {"log": checkpoint.origin, "signed_entries": checkpoint.size, "content": has_content}
    return VALID, {"valid": True, **proven, **signed}


def check_entry(given: argparse.Namespace, receipt: Receipt) -> bool:
    """Whether the entry's content was verified too, which takes the audit key, and the entry before it."""
    lines = read_small_file(given.entry, "the entry file").splitlines()
    try:
        *before, (seq, _, canonical, stored, _) = [read_entry(line + b"\n") for line in lines]
        previous = strict_base64(before[0][3], 32) if before else GENESIS
    except ValueError as problem:
        raise CannotTell(f"the entry file is malformed: {problem}") from None
    if len(before) > 1 or (before and before[0][0] != seq - 1):
        raise CannotTell("the entry file has the line of the entry, and before it at most that of the previous one")
    if seq != receipt.index + 1 or stored != base64.b64encode(receipt.hmac):
        raise Forged("it is of another entry")
    keys = read_keys(given.key_file, False)
    key = keys.get(max((first for first in keys if first <= seq), default=0))
    if keys and (key is None or (seq > 1 and not before)):
        raise CannotTell("its content takes the audit key of the entry, and the line of the entry before it")
    if key is None:
        return False
    if not hmac.compare_digest(digest(key, previous + canonical), receipt.hmac):
        raise Forged("its entry was altered, or the key is not this log's audit key")
    return True


def verify_consistency(given: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    checkpoints = read_checkpoints(given)
    if len(checkpoints) != 2:
        raise CannotTell("there are not two checkpoints")
    older, newer = checkpoints
    text = read_small_file(given.consistency, "the proof")
    with reading("the proof", 'it is JSON with a list "proof" of hashes as base64'):
        value = from_json(text.decode("utf-8"))
        proof = [strict_base64(text.encode(), 32) for text in value.get("data", value)["proof"]]
    if older.origin != newer.origin or not is_consistent(older, newer, proof):
        return BROKEN, {"valid": False, "message": "The second checkpoint is not shown to extend the first one."}
    return VALID, {"valid": True, "log": newer.origin, "from": older.size, "to": newer.size}


def guarded(argv: list[str]) -> int:
    """Every failure is 2: Python would exit 1 for an exception, and that means broken."""
    try:
        given = parse_arguments(argv)
        verify_given = verify_receipt if given.receipt else verify_consistency if given.consistency else verify_export
        status, verdict = verify_given(given)
        sys.stdout.write(json.dumps(verdict) + "\n")
        sys.stdout.flush()  # a verdict that did not get out is none
        return status
    except SystemExit as stop:  # argparse: 0 after --help, 2 otherwise
        return 0 if stop.code == 0 else CANNOT_TELL
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
