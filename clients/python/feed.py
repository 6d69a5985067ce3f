#!/usr/bin/env python3
"""Prints a project's notification feed, a JSON object a line: each event once and in order, across reconnections.

    PORTICO_KEY=sk-portico-… feed.py https://api.example.com/v1/organizations/ID/projects/ID [--after N] [--cursor FILE]

It is an example to read: the feed as docs/feed.md describes it (plain JSON, with the header `Authorization`), with only the
standard library and Debian's python3-websocket. `follow` is the part to copy.
"""
import argparse
import http.client
import json
import os
import random
import ssl
import sys
import tempfile
import time
import urllib.error
import urllib.request

try:
    import websocket
except ImportError:
    sys.exit("feed.py needs websocket-client: pip install websocket-client, or on Debian apt install python3-websocket.")

# The server pings every 15 seconds: a connection that is silent for longer is dead.
SILENCE_SECONDS = 40
# Close codes after which reconnecting would fail the same way.
FINAL_CODES = (4400, 4406, 4409, 4429)
# Statuses below 500 after which a retry may succeed.
RETRYABLE_STATUSES = (408, 409, 425, 429)


class Ended(Exception):
    """Retrying cannot help; the message says why in a sentence."""


class Broken(Exception):
    """The connection failed; another may succeed. `seconds`: the `Retry-After` of the server, or None."""

    def __init__(self, why, seconds=None):
        super().__init__(why)
        self.seconds = seconds


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, as it would be sent the credential, wherever it leads."""

    def redirect_request(self, *_):
        return None


def follow(project, credential, after=None, on_wait=lambda failure, seconds: None):
    """The events of a project after the sequence `after`, or from now on. Raises `Ended`; retries after any other failure."""
    cursor, tries = after, 0
    while True:
        try:
            for event in read_connection(project, credential, cursor):
                tries = 0
                # A `read` event has no sequence; a gap has two, of which the last is the cursor.
                cursor = event.get("sequence", event.get("to", cursor))
                yield event
        except Broken as failure:
            # Exponential backoff from 0.1 s up to 10 s, with jitter.
            seconds = min(0.1 * 2 ** min(tries, 7), 10) * random.uniform(0.5, 1)
            seconds = max(seconds, failure.seconds or 0)
            tries += 1
            on_wait(failure, seconds)
            time.sleep(seconds)


def read_connection(project, credential, cursor):
    """The events of one connection, until it raises `Broken` or `Ended`."""
    query = "" if cursor is None else f"?after={cursor}"
    socket = None
    try:
        socket = websocket.create_connection(
            f"{project.replace('http', 'ws', 1)}/notifications/ws{query}",
            header=[f"Authorization: Bearer {credential}"],
            timeout=SILENCE_SECONDS,
            # Only browsers send an origin. JSON parsing validates the text.
            suppress_origin=True,
            skip_utf8_validation=True,
            # A redirect would be sent the credential, wherever it leads.
            redirect_limit=0,
        )
        if socket.getstatus() != 101:
            raise classify_rejection(project, credential, socket.getstatus(), None)
        while True:
            # `recv_data` answers pings.
            opcode, data = socket.recv_data()
            if opcode == websocket.ABNF.OPCODE_CLOSE:
                raise classify_close(int.from_bytes(data[:2], "big"), data[2:].decode(errors="replace"))
            try:
                event = json.loads(data)
            except ValueError:
                raise Broken("something before the server has answered what is not JSON") from None
            yield event
    except websocket.WebSocketBadStatusException as refusal:
        raise classify_rejection(project, credential, refusal.status_code, refusal.resp_headers.get("retry-after")) from None
    except ssl.SSLCertVerificationError as failure:
        raise Ended(f"The certificate of the server is not trusted: {failure.verify_message}.") from None
    except (OSError, websocket.WebSocketException) as failure:
        raise Broken(f"no connection ({failure})") from None
    finally:
        if socket:
            socket.shutdown()


def classify_close(code, reason):
    """Whether to reconnect after a socket was closed: docs/feed.md lists the codes."""
    how = f"{code} {reason}".strip()
    return Ended(f"The server closed the feed with {how}.") if code in FINAL_CODES else Broken(f"closed with {how}")


def classify_rejection(project, credential, status, retry_after):
    """Whether to retry after an upgrade was rejected. A plain request for the same log returns the reason in words."""
    if status in RETRYABLE_STATUSES or status >= 500 or status < 400:
        return Broken(f"refused with {status}", float(retry_after) if (retry_after or "").isdecimal() else None)
    request = urllib.request.Request(f"{project}/notifications?page_size=1", headers={"Authorization": f"Bearer {credential}"})
    try:
        try:
            urllib.request.build_opener(NoRedirect).open(request, timeout=SILENCE_SECONDS).close()
            return Ended(f"The server refused the feed with {status}.")
        except urllib.error.HTTPError as refusal:
            with refusal:
                code, body = refusal.code, refusal.read()
    except (OSError, http.client.HTTPException) as failure:
        return Broken(f"no connection ({failure})")
    try:
        why = json.loads(body)["detail"] if code == status else "another request is answered otherwise."
    except (ValueError, LookupError, TypeError):
        why = "something before it has answered."
    return Ended(f"The server refused the feed with {status}: {why}")


def read_cursor(path):
    try:
        return int(open(path).read()) if path and os.path.exists(path) else None
    except ValueError:
        sys.exit(f"{path} holds no cursor: remove it, or write the last sequence that you have into it.")


def write_cursor(path, cursor):
    """Replaces the file atomically."""
    # Other users may write to the folder: the name of the draft cannot be guessed.
    draft, name = tempfile.mkstemp(dir=os.path.dirname(path) or ".")
    with open(draft, "w") as file:
        file.write(f"{cursor}\n")
    os.replace(name, path)


def main():
    parser = argparse.ArgumentParser(description="Prints a project's notification feed, a JSON object a line.")
    parser.add_argument("project", help="https://…/v1/organizations/ID/projects/ID")
    parser.add_argument("--after", type=int, help="the last sequence that you have; without it the feed begins now")
    parser.add_argument("--cursor", metavar="FILE", help="keeps the last sequence that was printed, and goes on behind it")
    given = parser.parse_args()
    if not given.project.startswith(("http://", "https://")):
        parser.error("the project is an address that begins with http:// or https://")
    credential = os.environ.get("PORTICO_KEY", "").strip()
    # A text that is invalid in a header would be repeated in an error.
    if not credential or not (credential.isascii() and credential.isprintable()):
        sys.exit("PORTICO_KEY is to hold an API key, or a session token.")
    stored = read_cursor(given.cursor)
    report_wait = lambda failure, seconds: print(f"waiting {seconds:.1f} s: {failure}", file=sys.stderr, flush=True)
    try:
        for event in follow(given.project.rstrip("/"), credential, given.after if stored is None else stored, report_wait):
            print(json.dumps(event, ensure_ascii=False), flush=True)
            cursor = event.get("sequence", event.get("to"))
            # Printed first: a program killed in between prints the last event once more after its restart.
            if given.cursor and cursor is not None:
                write_cursor(given.cursor, cursor)
    except Ended as end:
        sys.exit(str(end))
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)
    except OSError as failure:
        sys.exit(f"The cursor cannot be kept: {failure}.")


if __name__ == "__main__":
    main()
