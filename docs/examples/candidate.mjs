#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// A candidate of a group over HTTP: it works only while it leads. Node.js 18 or later, without packages.
//
//     candidate.mjs GROUP ID HOST:PORT [HOST:PORT …]       any nodes of the cluster, the nearest first
//
// What keeps two of them from working at once:
//   * The deadline counts from this program's own sends, never from when an answer or event was read.
//   * The clock goes on while the machine is suspended. process.hrtime() and performance.now() stop, and Date
//     jumps; the first number of /proc/uptime is CLOCK_BOOTTIME.
//   * Before each step of its work it compares the clock with the deadline.
//   * It stops its work before it resigns, and never works again with an epoch it has resigned.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const TTL_MS = 2000;
const ANSWER_MS = 600; // time limit for an answer; a whole number, or AbortSignal.timeout() refuses it
const TICK_MS = 10; // resolution of /proc/uptime, which is rounded down

// For sends, never later than now. For comparisons, never earlier: the current tick is added.
const sentMs = () => Math.round(parseFloat(readFileSync("/proc/uptime", "latin1")) * 1000);
const nowMs = () => sentMs() + TICK_MS;

class Candidate {
    constructor(group, name, nodes) {
        this.path = `/groups/${encodeURIComponent(group)}/`;
        this.name = name;
        this.nodes = nodes;
        this.session = null; // { id, named, validMs, deadline, epoch, wish }
        this.resigned = 0; // the newest epoch that it gave up
        this.told = ""; // the last refusal
        this.follow();
        this.keepAlive();
    }

    // The epoch with which it leads at this instant of nowMs(); 0 if it does not lead.
    leads(now) {
        return this.session && now < this.session.deadline ? this.session.epoch : 0;
    }

    isAskedToHandOver() {
        return Boolean(this.session?.epoch && this.session.wish === this.session.epoch);
    }

    // Lets another lead. Only after the work has stopped!
    async resign(stay) {
        const session = this.session;
        if (!session) return;
        const body = { session: session.id, stay };
        if (session.epoch) body.epoch = session.epoch; // a call that arrives late must not give up a later mandate
        this.resigned = Math.max(this.resigned, session.epoch);
        session.epoch = 0;
        for (const node of [...this.nodes])
            if ([200, 404, 409, 410].includes(await this.ask(node, "resign", body))) return;
        this.session = null; // no node answered: let the session expire, and start again
    }

    open(node, call, body, signal) {
        const headers = { connection: "close" }; // a connection that a proxy has dropped would swallow the next call
        return fetch(`http://${node}${this.path}${call}`, { method: "POST", body: JSON.stringify(body), headers, signal });
    }

    // The status code of the answer; 0 if there is none.
    async ask(node, call, body) {
        try {
            const answer = await this.open(node, call, body, AbortSignal.timeout(ANSWER_MS));
            await answer.text();
            return answer.status;
        } catch {
            return 0;
        }
    }

    // Proves to any node that this process is alive; the deadline follows from this.
    async keepAlive() {
        for (;;) {
            await sleep(TTL_MS / 4);
            const session = this.session;
            for (const node of session ? [...this.nodes] : []) {
                const sent_at = sentMs(); // before it is sent
                const code = await this.ask(node, "keepalive", { ...session.named, sent_at });
                if (code === 200) session.deadline = Math.max(session.deadline, sent_at + session.validMs);
                if (code === 410) this.end(session); // the session is over: campaign again
                if (code === 200 || code === 410) break;
            }
        }
    }

    end(session) {
        session.epoch = 0;
        if (this.session === session) this.session = null;
    }

    // Reads the stream of events, which only informs; when it breaks, another node is asked.
    async follow() {
        for (;;) {
            const session = this.session;
            const body = { sent_at: sentMs() };
            if (session) Object.assign(body, session.named);
            else Object.assign(body, { candidate: this.name, ttl_ms: TTL_MS });
            const quiet = new AbortController();
            const alarm = setTimeout(() => quiet.abort(), TTL_MS); // `alive` events come more often
            try {
                const stream = await this.open(this.nodes[0], session ? "events" : "campaign", body, quiet.signal);
                if (stream.status === 200) await this.read(stream.body, alarm);
                else if (stream.status === 410 && session) this.end(session);
                else this.tell(await stream.text());
            } catch {
                // broken, or silent
            }
            clearTimeout(alarm);
            quiet.abort();
            this.nodes = [...this.nodes.slice(1), this.nodes[0]];
            await sleep(100);
        }
    }

    // For people: the id is taken, the token is missing. Printed once, since the call is retried at once.
    tell(refusal) {
        if (refusal !== this.told) console.error(refusal.trim());
        this.told = refusal;
    }

    async read(chunks, alarm) {
        const decoder = new TextDecoder();
        let text = "";
        let event = "";
        for await (const chunk of chunks) {
            alarm.refresh();
            text += decoder.decode(chunk, { stream: true });
            const lines = text.split("\n");
            text = lines.pop();
            for (const line of lines) {
                if (line.startsWith("event: ")) event = line.slice(7);
                else if (line.startsWith("data: ")) this.hear(event, JSON.parse(line.slice(6)));
            }
        }
    }

    hear(event, data) {
        const session = this.session;
        if (event === "session" && session?.id !== data.session) {
            const deadline = data.sent_at + data.valid_ms;
            const named = { session: data.session };
            // Another session may be opened under the id, when this one has expired.
            if (data.session_revision) named.session_revision = data.session_revision;
            this.session = { id: data.session, named, validMs: data.valid_ms, deadline, epoch: 0, wish: 0 };
        } else if (!session) return;
        else if (event === "elected" && data.epoch > this.resigned) session.epoch = data.epoch; // the deadline still decides
        else if (event === "hand_over") session.wish = data.epoch;
        else if (event === "hand_over_cancelled") session.wish = 0;
        else if (event === "demoted") session.epoch = 0;
        else if (event === "ended") this.end(session);
    }
}

// One short step. Whatever it writes elsewhere carries the epoch, so that the receiver can refuse older ones.
function work(candidate, epoch, now) {
    console.log(`${now} ${epoch} ${candidate.name}`);
}

const [group, name, ...nodes] = process.argv.slice(2);
if (!nodes.length) {
    console.error("usage: candidate.mjs GROUP ID HOST:PORT [HOST:PORT …]");
    process.exit(2);
}
const candidate = new Candidate(group, name, nodes);
let stops = false;
process.on("SIGTERM", () => (stops = true));
process.on("SIGINT", () => (stops = true));
while (!stops) {
    await sleep(20);
    const now = nowMs();
    const epoch = candidate.leads(now);
    if (epoch && candidate.isAskedToHandOver()) await candidate.resign(true); // between two steps: the work has stopped
    else if (epoch) work(candidate, epoch, now);
}
await candidate.resign(false);
process.exit(0);
