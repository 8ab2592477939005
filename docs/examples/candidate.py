#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A candidate of a group over HTTP: it works only while it leads.

    candidate.py GROUP ID HOST:PORT [HOST:PORT …]       any nodes of the cluster, the nearest first

What keeps two of them from working at once:
  * The deadline counts from this program's own sends, never from when an answer or event was read.
  * The clock goes on while the machine is suspended (CLOCK_BOOTTIME); the wall clock is never used.
  * Before each step of its work it compares the clock with the deadline.
  * It stops its work before it resigns, and never works again with an epoch it has resigned.
"""
import http.client
import json
import signal
import sys
import threading
import time
import urllib.parse

TTL_MS = 2000
ANSWER_MS = 600  # time limit for an answer


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class Session:
    """What is known about one session of the cluster."""

    def __init__(self, told):
        self.id = told["session"]
        self.named = {"session": self.id}
        if told.get("session_revision"):  # another session may be opened under the id, when this one has expired
            self.named["session_revision"] = told["session_revision"]
        self.valid_ms = told["valid_ms"]
        self.deadline = told["sent_at"] + told["valid_ms"]
        self.epoch = 0  # that it leads with; 0: it does not lead
        self.wish = 0  # the epoch that it is asked to hand over


class Candidate:
    def __init__(self, group, name, nodes):
        self.path = f"/groups/{urllib.parse.quote(group, safe='')}/"
        self.name = name
        self.nodes = nodes
        self.session = None
        self.told = ""  # the last refusal
        self.resigned = 0  # the newest epoch that it gave up
        self.lock = threading.Lock()  # guards session and resigned
        threading.Thread(target=self._follow, daemon=True).start()
        threading.Thread(target=self._keep_alive, daemon=True).start()

    def leads(self):
        """The epoch with which it leads, or 0, and the instant of now_ms() at which that was true."""
        session = self.session
        epoch = session.epoch if session else 0
        now = now_ms()  # after the epoch was read: another thread may just have received a newer one
        return epoch if session and now < session.deadline else 0, now

    def is_asked_to_hand_over(self):
        session = self.session
        return bool(session and session.epoch and session.wish == session.epoch)

    def resign(self, stay):
        """Lets another lead. Only after the work has stopped!"""
        with self.lock:
            session = self.session
            if not session:
                return
            body = {"session": session.id, "stay": stay}
            if session.epoch:
                body["epoch"] = session.epoch  # a call that arrives late must not give up a later mandate
            self.resigned = max(self.resigned, session.epoch)
            session.epoch = 0
        for node in list(self.nodes):
            if self._ask(node, "resign", body) in (200, 404, 409, 410):
                return
        self.session = None  # no node answered: let the session expire, and start again

    def _open(self, node, call, body, timeout_s):
        host, port = node.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=timeout_s)
        connection.request("POST", self.path + call, json.dumps(body))
        return connection.getresponse()

    def _ask(self, node, call, body):
        """The status code of the answer; 0 if there is none."""
        try:
            answer = self._open(node, call, body, ANSWER_MS / 1000)
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            return 0

    def _keep_alive(self):
        """Proves to any node that this process is alive; the deadline follows from this."""
        while True:
            time.sleep(TTL_MS / 4000)
            session = self.session
            for node in list(self.nodes) if session else []:
                sent_at = now_ms()  # before it is sent
                code = self._ask(node, "keepalive", {**session.named, "sent_at": sent_at})
                if code == 200:
                    session.deadline = max(session.deadline, sent_at + session.valid_ms)
                elif code == 410:
                    session.epoch = 0
                    self.session = None  # the session is over: campaign again
                if code in (200, 410):
                    break

    def _follow(self):
        """Reads the stream of events, which only informs; when it breaks, another node is asked."""
        while True:
            session = self.session
            call, body = "events", {"sent_at": now_ms()}
            if session:
                body.update(session.named)
            else:
                call = "campaign"
                body.update(candidate=self.name, ttl_ms=TTL_MS)
            try:
                stream = self._open(self.nodes[0], call, body, TTL_MS / 1000)  # `alive` events come more often
                if stream.status == 200:
                    self._read(stream)
                elif stream.status == 410:
                    self.session = None
                else:
                    self._tell(stream.read().decode())
            except (OSError, http.client.HTTPException, ValueError):
                pass
            self.nodes = self.nodes[1:] + self.nodes[:1]
            time.sleep(0.1)

    def _tell(self, refusal):
        """For people: the id is taken, the token is missing. Printed once, since the call is retried at once."""
        if refusal != self.told:
            print(refusal.strip(), file=sys.stderr, flush=True)
        self.told = refusal

    def _read(self, stream):
        event = ""
        for line in stream:
            key, _, value = line.decode().rstrip("\n").partition(": ")
            if key == "event":
                event = value
            elif key == "data":
                with self.lock:
                    self._hear(event, json.loads(value))

    def _hear(self, event, data):
        session = self.session
        if event == "session" and not (session and session.id == data["session"]):
            self.session = Session(data)
        elif not session:
            return
        elif event == "elected" and data["epoch"] > self.resigned:
            session.epoch = data["epoch"]  # the deadline says whether it still holds
        elif event == "hand_over":
            session.wish = data["epoch"]
        elif event == "hand_over_cancelled":
            session.wish = 0
        elif event == "demoted":
            session.epoch = 0
        elif event == "ended":
            session.epoch = 0
            self.session = None


def work(candidate, epoch, now):
    """One short step. Whatever it writes elsewhere carries the epoch, so that the receiver can refuse older ones."""
    print(f"{now} {epoch} {candidate.name}", flush=True)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    candidate = Candidate(sys.argv[1], sys.argv[2], sys.argv[3:])
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    while not stop.wait(0.02):
        epoch, now = candidate.leads()
        if epoch and candidate.is_asked_to_hand_over():
            candidate.resign(stay=True)  # between two steps: the work has stopped
        elif epoch:
            work(candidate, epoch, now)
    candidate.resign(stay=False)


if __name__ == "__main__":
    main()
