// A minimal Faultline worker on Node: one session, handlers by task name, beats, fenced results.
//
//   FAULTLINE_SERVER=grpc://localhost:8001 FAULTLINE_API_KEY=flk_... node main.js
//
// A lease is job id, token and claim. The database compares all three on every write, so nothing here can break a
// promise; what is here makes a good neighbour: it stops what it has lost, and never guesses an unknown outcome.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';

const here = path.dirname(fileURLToPath(import.meta.url));
const protos = [process.env.FAULTLINE_PROTO, path.join(here, 'proto'), path.join(here, '..', '..', 'proto')];
const root = protos.find((folder) => folder && fs.existsSync(path.join(folder, 'faultline/rpc/v1/worker.proto')));

// Ids and tokens are 64 bits wide: as strings, because a JavaScript number loses them above 2^53.
const definition = loader.loadSync('faultline/rpc/v1/worker.proto', {
  includeDirs: [root], longs: String, enums: String, bytes: Buffer, defaults: true, oneofs: true,
});
const { Workers } = grpc.loadPackageDefinition(definition).faultline.rpc.v1;

const LOST = new Error('the lease is lost');
const now = () => performance.now();
const sleep = (ms) => new Promise((done) => { setTimeout(done, ms).unref?.(); });

// The same in every attempt, no other job's: a UUID of version 5 in a namespace of the job's seed and id.
function idempotencyKey(job, name) {
  const id = Buffer.alloc(8);
  id.writeBigInt64BE(BigInt(job.id));
  const hash = createHash('sha1').update(job.keySeed).update(id).update(name).digest().subarray(0, 16);
  hash[6] = (hash[6] & 0x0f) | 0x50;
  hash[8] = (hash[8] & 0x3f) | 0x80;
  return hash.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

export class Worker {
  constructor({ server, key, queues = ['default'], handlers, slots = 10, leaseMs = 15_000, log = console.error }) {
    const [, scheme, target] = /^(?:(\w+):\/\/)?([^/]+)\/?$/.exec(server);
    const secure = scheme === 'grpcs' || scheme === 'https';
    this.metadata = new grpc.Metadata();
    if (key) this.metadata.set('authorization', `Bearer ${key}`);
    this.client = new Workers(target, secure ? grpc.credentials.createSsl() : grpc.credentials.createInsecure(), {
      'grpc.keepalive_time_ms': 20_000, 'grpc.max_reconnect_backoff_ms': 2_000,
    });
    Object.assign(this, { queues, handlers, slots, leaseMs, log });
    this.worker = 0;
    this.inHand = new Map(); // token and job id -> what we know of the lease
    this.stream = null;
    this.ids = 0;
    this.asks = new Map(); // ask id -> the stream it went out on, and the moment it was sent
    this.beats = new Map(); // beat id -> the hands it named and the moment it was sent
    this.sent = new Map(); // results id -> the hands it named
    this.outbox = [];
    this.stopping = false;
  }

  // ---- the session

  async run() {
    let pause = 100;
    while (!this.stopping || this.inHand.size) {
      const stream = this.open();
      const welcomed = await stream.ended;
      if (this.stopping && !this.inHand.size) break;
      pause = welcomed ? 100 : Math.min(pause * 2, 2_000);
      await sleep(pause);
    }
    clearInterval(this.ticker);
    this.client.close();
  }

  open() {
    const call = this.client.Session(this.metadata);
    const stream = { call, welcomed: false, draining: false };
    this.stream = stream;
    stream.ended = new Promise((done) => {
      call.on('data', (message) => this.hear(stream, message));
      call.on('error', (error) => { this.log(`session: ${error.code} ${error.details}`); this.over(stream); done(stream.welcomed); });
      call.on('end', () => { this.over(stream); done(stream.welcomed); });
    });
    call.write({ hello: {
      protocol: 1, name: `${os.hostname()}:${process.pid}`, host: os.hostname(), pid: process.pid,
      version: `node-worker/1.0 node/${process.versions.node}`, queues: this.queues, tasks: Object.keys(this.handlers),
      slots: this.slots, leaseMs: this.leaseMs, worker: this.worker,
    } });
    return stream;
  }

  over(stream) {
    if (stream.over) return;
    stream.over = true;
    // What was sent on it and not answered may or may not have been recorded: rows will tell.
    for (const [id, { hands, on }] of this.sent) {
      if (on !== stream) continue;
      this.sent.delete(id);
      this.askRows(hands);
    }
    for (const [id, { on }] of this.asks) if (on === stream) this.asks.delete(id);
    if (this.stream === stream) this.stream = null;
  }

  waiting(stream) {
    return [...this.asks].find(([, { on }]) => on === stream)?.[0];
  }

  hear(stream, { message, ...said }) {
    if (message === 'welcome') {
      stream.welcomed = true;
      this.worker = said.welcome.worker;
      this.leaseMs = said.welcome.leaseMs;
      this.ticker ??= setInterval(() => this.tick(), 50);
    } else if (message === 'assignments') this.assigned(said.assignments);
    else if (message === 'beaten') this.beaten(said.beaten);
    else if (message === 'settled') this.settled(said.settled);
    else if (message === 'notice') this.notice(stream, said.notice);
  }

  notice(stream, said) {
    if (said.news === 'cancel') this.lose(this.inHand.get(`${said.cancel.token}/${said.cancel.jobId}`));
    if (said.news === 'drain' && stream === this.stream && !this.stopping) {
      stream.draining = true;
      this.open(); // the old one ends when the server says so; its answers still count
      setTimeout(() => stream.call.end(), 1_000).unref();
    }
  }

  // ---- every 50 ms: ask, beat, send

  tick() {
    for (const hand of this.inHand.values()) {
      // Stop by ourselves before the lease runs out, when no beat came through.
      if (!hand.over && now() > hand.safeUntil) this.lose(hand);
    }
    const stream = this.stream;
    if (!stream?.welcomed || stream.draining) return;
    const due = [...this.inHand.values()].filter((hand) => !hand.over && now() - hand.beatAt >= hand.leaseMs * 0.3);
    if (due.length || now() - (this.seenAt ?? 0) > 5_000) this.beat(stream, due);
    if (this.outbox.length) {
      const hands = this.outbox.splice(0, 250);
      const id = ++this.ids;
      this.sent.set(id, { hands, on: stream });
      stream.call.write({ results: { id, items: hands.map((hand) => ({ ...proof(hand), ...hand.outcome })) } });
    }
    const room = this.slots - this.inHand.size;
    if (!this.waiting(stream) && room > 0 && !this.stopping) {
      const id = ++this.ids;
      this.asks.set(id, { on: stream, at: now() });
      stream.call.write({ ask: { id, room, waitMs: 5_000 } });
    }
  }

  beat(stream, hands) {
    const id = ++this.ids;
    this.seenAt = now();
    for (const hand of hands) hand.beatAt = now();
    this.beats.set(id, { hands, at: now() });
    stream.call.write({ beat: { id, leases: hands.map(proof) } });
  }

  beaten({ id, answers, trouble }) {
    const { hands, at } = this.beats.get(Number(id)) ?? { hands: [] };
    this.beats.delete(Number(id));
    if (trouble) return; // nothing was renewed; the next tick tries again
    hands.forEach((hand, index) => {
      if (answers[index] === 'PULSE_HELD') hand.safeUntil = at + hand.leaseMs; // from the moment the beat was sent
      else if (answers[index] !== 'PULSE_BUSY') this.lose(hand);
    });
  }

  // ---- jobs

  assigned({ id, jobs, waitedMs, more, trouble }) {
    const asked = this.asks.get(Number(id));
    if (!more) this.asks.delete(Number(id));
    if (!asked) return; // of a stream that we took for gone: their leases run out, and others take them
    if (trouble) this.log(`asked in vain: ${trouble.problem.code}`);
    for (const job of jobs) {
      // The lease began no earlier than this: when the Ask was sent, plus what the server says it kept it.
      const taken = asked.at + waitedMs;
      const hand = {
        job, leaseMs: job.leaseMs, beatAt: taken, safeUntil: taken + job.leaseMs, stop: new AbortController(), over: false,
      };
      this.inHand.set(`${job.token}/${job.id}`, hand);
      this.start(hand);
    }
  }

  async start(hand) {
    const { job } = hand;
    const handler = this.handlers[job.task];
    if (!handler) {
      return this.finish(hand, { released: { reason: 'unknown_task', delayMs: 1_000 } });
    }
    const deadline = setTimeout(() => hand.stop.abort(new Error('out of time')), Math.min(Number(job.deadlineMs), 2 ** 31 - 1));
    try {
      const said = await handler(JSON.parse(job.args.toString()), {
        id: job.id, token: job.token, attempt: job.attempt, signal: hand.stop.signal,
        idempotencyKey: (name) => idempotencyKey(job, name),
      });
      this.finish(hand, { done: { result: Buffer.from(JSON.stringify(said ?? null)) } });
    } catch (error) {
      this.finish(hand, { failed: { error: String(error?.stack ?? error).slice(0, 8_000) } });
    } finally {
      clearTimeout(deadline);
    }
  }

  finish(hand, outcome) {
    if (hand.over) return; // lost meanwhile: nothing we say counts, so we say nothing
    hand.outcome = outcome;
    this.outbox.push(hand);
  }

  lose(hand) {
    if (!hand || hand.over) return;
    this.drop(hand);
    hand.stop.abort(LOST);
  }

  drop(hand) {
    hand.over = true;
    this.outbox = this.outbox.filter((one) => one !== hand);
    this.inHand.delete(`${hand.job.token}/${hand.job.id}`);
  }

  // ---- answers to results

  settled({ id, rest }) {
    const hands = this.sent.get(Number(id))?.hands ?? [];
    this.sent.delete(Number(id));
    const named = new Map(rest.map((item) => [item.index, item]));
    hands.forEach((hand, index) => {
      const item = named.get(index);
      if (!item) this.drop(hand);
      else this.unsettled(hand, item);
    });
  }

  unsettled(hand, { why, refusal, problem }) {
    if (why === 'WHY_REFUSED') {
      this.log(`job ${hand.job.id}: token ${hand.job.token} was refused (${refusal.reason}, now ${refusal.currentToken})`);
      this.lose(hand);
    } else if (why === 'WHY_INVALID') {
      this.finish(hand, { failed: { error: problem.message } });
    } else if (why === 'WHY_UNKNOWN') {
      this.askRows([hand]);
    } else { // busy, or the database was away
      setTimeout(() => { if (!hand.over) this.outbox.push(hand); }, 200);
    }
  }

  // An outcome whose answer never came is not guessed: the rows are asked before it is sent again.
  askRows(hands) {
    const asked = hands.filter((hand) => !hand.over);
    if (!asked.length) return;
    const options = { deadline: Date.now() + 10_000 };
    this.client.Outcome({ leases: asked.map(proof) }, this.metadata, options, (error, answer) => {
      if (error) return void setTimeout(() => this.askRows(asked), 500);
      asked.forEach((hand, index) => {
        if (hand.over) return;
        if (answer.ends[index] === 'END_RUNNING') this.outbox.push(hand);
        else this.drop(hand); // recorded, or no longer ours: either way there is nothing more to say
      });
    });
  }

  // ---- the end

  async stop(graceMs = 25_000) {
    this.stopping = true;
    const waiting = this.stream && this.waiting(this.stream);
    if (waiting) this.stream.call.write({ withdraw: { id: waiting } });
    const until = now() + graceMs;
    while (this.inHand.size && now() < until) await sleep(50);
    for (const hand of [...this.inHand.values()]) {
      this.finish(hand, { released: { reason: 'the worker is stopping' } });
      hand.stop.abort(LOST);
    }
    await sleep(200);
    this.stream?.call.write({ goodbye: {} });
    this.stream?.call.end();
    await sleep(200);
  }
}

const proof = (hand) => ({ jobId: hand.job.id, token: hand.job.token, claim: hand.job.claim });
