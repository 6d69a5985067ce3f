#!/usr/bin/env python3
"""Prints a project's notification feed, a JSON object a line: each event once and in order, through every break.

    PORTICO_KEY=sk-portico-… feed.py https://api.example.com/v1/organizations/ID/projects/ID [--after N] [--cursor FILE]

It is written to be read: the feed as docs/feed.md describes it (plain JSON, with the header `Authorization`), by the standard
library and Debian's python3-websocket. `follow` is the part to copy.
"""
import argparse
import http.client
import json
import os
import random
import ssl
import sys
import time
import urllib.error
import urllib.request

try:
    import websocket
except ImportError:
    sys.exit("feed.py needs websocket-client: pip install websocket-client, or on Debian apt install python3-websocket.")

# The server pings every 15 seconds: a connection that is silent for longer is dead.
SILENCE_SECONDS = 40
# Codes of sockets that would be closed the same way again.
FINAL_CODES = (4400, 4406, 4409, 4429)
# Statuses below 500 after which waiting helps.
PASSING_STATUSES = (408, 409, 425, 429)


class Ended(Exception):
    """Nothing can help; says why in a sentence."""


class Broken(Exception):
    """The connection is not there; another one may be. `seconds`: how long the server asks to be left alone, or None."""

    def __init__(self, why, seconds=None):
        super().__init__(why)
        self.seconds = seconds


def follow(project, credential, after=None, on_wait=lambda failure, seconds: None):
    """The events of a project, from the sequence after `after` on, or from now on. Raises `Ended`; all else it waits out."""
    cursor, tries = after, 0
    while True:
        try:
            for event in read_connection(project, credential, cursor):
                tries = 0
                # `read` has no place in the log; a gap has two, of which the last one counts.
                cursor = event.get("sequence", event.get("to", cursor))
                yield event
        except Broken as failure:
            # 0.1 s, twice as long each time up to 10 s, and not all clients at once.
            seconds = min(0.1 * 2 ** min(tries, 7), 10) * random.uniform(0.5, 1)
            seconds = max(seconds, failure.seconds or 0)
            tries += 1
            on_wait(failure, seconds)
            time.sleep(seconds)


def read_connection(project, credential, cursor):
    """The events of one connection, until it ends: by `Broken`, or by `Ended`."""
    behind = "" if cursor is None else f"?after={cursor}"
    socket = None
    try:
        socket = websocket.create_connection(
            f"{project.replace('http', 'ws', 1)}/notifications/ws{behind}",
            header=[f"Authorization: Bearer {credential}"],
            timeout=SILENCE_SECONDS,
            # Only a browser has an origin. The text is checked where it is parsed.
            suppress_origin=True,
            skip_utf8_validation=True,
        )
        while True:
            # Pings are answered in here.
            opcode, data = socket.recv_data()
            if opcode == websocket.ABNF.OPCODE_CLOSE:
                raise judge_close(int.from_bytes(data[:2], "big"), data[2:].decode(errors="replace"))
            try:
                event = json.loads(data)
            except ValueError:
                raise Broken("something before the server has answered what is not JSON") from None
            yield event
    except websocket.WebSocketBadStatusException as refusal:
        raise judge_refusal(project, credential, refusal.status_code, refusal.resp_headers.get("retry-after")) from None
    except ssl.SSLCertVerificationError as failure:
        raise Ended(f"The certificate of the server is not trusted: {failure.verify_message}.") from None
    except (OSError, websocket.WebSocketException) as failure:
        raise Broken(f"no connection ({failure})") from None
    finally:
        if socket:
            socket.shutdown()


def judge_close(code, reason):
    """How to go on after a socket was closed: docs/feed.md lists the codes."""
    how = f"{code} {reason}".strip()
    return Ended(f"The server closed the feed with {how}.") if code in FINAL_CODES else Broken(f"closed with {how}")


def judge_refusal(project, credential, status, retry_after):
    """How to go on after an upgrade was refused. A request for the same log says why in words."""
    if status in PASSING_STATUSES or status >= 500 or status < 400:
        return Broken(f"refused with {status}", float(retry_after) if (retry_after or "").isdecimal() else None)
    request = urllib.request.Request(f"{project}/notifications?page_size=1", headers={"Authorization": f"Bearer {credential}"})
    try:
        try:
            urllib.request.urlopen(request, timeout=SILENCE_SECONDS).close()
            return Ended(f"The server refused the feed with {status}.")
        except urllib.error.HTTPError as refusal:
            with refusal:
                code, answer = refusal.code, refusal.read()
    except (OSError, http.client.HTTPException) as failure:
        return Broken(f"no connection ({failure})")
    try:
        why = json.loads(answer)["detail"] if code == status else "another request is answered otherwise."
    except (ValueError, LookupError, TypeError):
        why = "something before it has answered."
    return Ended(f"The server refused the feed with {status}: {why}")


def read_cursor(path):
    try:
        return int(open(path).read()) if path and os.path.exists(path) else None
    except ValueError:
        sys.exit(f"{path} holds no cursor: remove it, or write the last sequence that you have into it.")


def write_cursor(path, cursor):
    """Whole, or not at all."""
    with open(f"{path}.new", "w") as file:
        file.write(f"{cursor}\n")
    os.replace(f"{path}.new", path)


def main():
    parser = argparse.ArgumentParser(description="Prints a project's notification feed, a JSON object a line.")
    parser.add_argument("project", help="https://…/v1/organizations/ID/projects/ID")
    parser.add_argument("--after", type=int, help="the last sequence that you have; without it the feed begins now")
    parser.add_argument("--cursor", metavar="FILE", help="keeps the last sequence that was printed, and goes on behind it")
    given = parser.parse_args()
    if not given.project.startswith(("http://", "https://")):
        parser.error("the project is an address that begins with http:// or https://")
    credential = os.environ.get("PORTICO_KEY", "").strip()
    # What no header may hold would be repeated in an error.
    if not credential or not (credential.isascii() and credential.isprintable()):
        sys.exit("PORTICO_KEY is to hold an API key, or a session token.")
    kept = read_cursor(given.cursor)
    say = lambda failure, seconds: print(f"waiting {seconds:.1f} s: {failure}", file=sys.stderr, flush=True)
    try:
        for event in follow(given.project.rstrip("/"), credential, given.after if kept is None else kept, say):
            print(json.dumps(event, ensure_ascii=False), flush=True)
            cursor = event.get("sequence", event.get("to"))
            # Printed first: whoever is killed in between prints the last event once more.
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
