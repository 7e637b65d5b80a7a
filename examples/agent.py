#!/usr/bin/env python3
"""An agent in Python, with the standard library alone, and openssl (3 or later) for its signature.

    LEASEHOLD_ADDR=http://127.0.0.1:7700 python3 examples/agent.py deploy-bot deploy-bot.pem prod/db/password
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

ADDRESS = os.environ.get("LEASEHOLD_ADDR", "http://127.0.0.1:7700")


class Refused(Exception):
    """What the service answered instead."""

    def __init__(self, code, message, request_id):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.request_id = request_id


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token must not go to somebody else's address."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def call(method, path, body=None, session=None):
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if session is not None:
        headers["Authorization"] = f"Bearer {session}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ADDRESS + path, data, headers, method=method)
    try:
        with OPENER.open(request, timeout=30) as answer:
            text = answer.read()
            return json.loads(text)["data"] if text else None
    except urllib.error.HTTPError as answer:
        try:
            error = json.loads(answer.read())["error"]
        except (ValueError, KeyError, TypeError):
            raise Refused("INVALID_RESPONSE", f"the server at this address is not Leasehold (HTTP {answer.code})", None) from None
        raise Refused(error["code"], error["message"], answer.headers["X-Request-Id"]) from None


def sign(key_file, nonce):
    """The Ed25519 signature over the nonce's bytes. The key stays in its file; a nonce is no secret."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(nonce)
        file.flush()
        command = ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key_file, "-in", file.name]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def log_in(agent, key_file):
    challenge = call("POST", "/auth/challenge", {"agent_name": agent})
    signature = sign(key_file, base64.b64decode(challenge["nonce"]))
    answer = {
        "agent_name": agent,
        "challenge_id": challenge["challenge_id"],
        "signature": base64.b64encode(signature).decode(),
    }
    return call("POST", "/auth/verify", answer)["session_id"]


def main(agent, key_file, path):
    session = log_in(agent, key_file)
    try:
        lent = call("GET", f"/api/v1/credentials/{urllib.parse.quote(path)}?ttl=60", session=session)
        try:
            work(lent["value"])
            print(f"Worked with {lent['path']}, on a lease until {lent['expires_at']}.")
        finally:
            call("DELETE", f"/api/v1/leases/{lent['lease_id']}", session=session)
    except Refused as refused:
        if refused.code != "ACCESS_DENIED":
            raise
        sys.exit(f"{agent} may not retrieve {path}. Whoever writes the policies finds the request as {refused.request_id}.")
    finally:
        call("DELETE", "/auth/session", session=session)


def work(password):
    """Stands for what the agent is there for: the value goes where it is needed, and is never printed."""
    assert password


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: agent.py AGENT KEY_FILE PATH")
    try:
        main(*sys.argv[1:])
    except (Refused, OSError, subprocess.CalledProcessError) as failure:
        sys.exit(str(failure))
