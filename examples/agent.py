#!/usr/bin/env python3
"""An agent in Python that needs only the standard library, and openssl (3 or later) for its signature.

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


class ApiError(Exception):
    """An error of the server."""

    def __init__(self, code, message, request_id):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.request_id = request_id


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Rejects redirects, because the token must not be sent to another server."""

    def redirect_request(self, *_):
        return None


# The empty ProxyHandler ignores the proxies of the environment, which would read the session and the value.
OPENER = urllib.request.build_opener(NoRedirect, urllib.request.ProxyHandler({}))


def call(method, path, body=None, session=None):
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if session is not None:
        headers["Authorization"] = f"Bearer {session}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ADDRESS + path, data, headers, method=method)
    try:
        with OPENER.open(request, timeout=30) as response:
            text = response.read()
            return json.loads(text)["data"] if text else None
    except urllib.error.HTTPError as response:
        try:
            error = json.loads(response.read())["error"]
        except (ValueError, KeyError, TypeError):
            message = f"the server at this address is not Leasehold (HTTP {response.code})"
            raise ApiError("INVALID_RESPONSE", message, None) from None
        raise ApiError(error["code"], error["message"], response.headers["X-Request-Id"]) from None


def sign(key_file, nonce):
    """Returns the Ed25519 signature over the nonce. The key stays in its file; the nonce is not secret."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(nonce)
        file.flush()
        command = ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key_file, "-in", file.name]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def log_in(agent, key_file):
    challenge = call("POST", "/auth/challenge", {"agent_name": agent})
    signature = sign(key_file, base64.b64decode(challenge["nonce"]))
    proof = {
        "agent_name": agent,
        "challenge_id": challenge["challenge_id"],
        "signature": base64.b64encode(signature).decode(),
    }
    return call("POST", "/auth/verify", proof)["session_id"]


def main(agent, key_file, path):
    session = log_in(agent, key_file)
    try:
        lease = call("GET", f"/api/v1/credentials/{urllib.parse.quote(path)}?ttl=60", session=session)
        try:
            work(lease["value"])
            print(f"Worked with {lease['path']}, on a lease until {lease['expires_at']}.")
        finally:
            call("DELETE", f"/api/v1/leases/{lease['lease_id']}", session=session)
    except ApiError as error:
        if error.code != "ACCESS_DENIED":
            raise
        sys.exit(f"{agent} may not retrieve {path}. The audit log records the request as {error.request_id}.")
    finally:
        call("DELETE", "/auth/session", session=session)


def work(password):
    """A placeholder for the agent's task: it passes the value on where it is needed, and never prints it."""
    assert password


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: agent.py AGENT KEY_FILE PATH")
    try:
        main(*sys.argv[1:])
    except (ApiError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
