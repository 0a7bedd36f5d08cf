// What every Node adapter shares; the same command line and the same files as _adapter.py.
import fs from "node:fs";
import { createRequire } from "node:module";

// node_modules is outside the repository: packages are found from $BENCH_NODE_DIR.
const { BENCH_NODE_DIR, BENCH_RUN_DIR } = process.env;
export const require_ = createRequire(BENCH_NODE_DIR + "/");
export const DSN = process.env.BENCH_DSN;
export const MODE = process.env.BENCH_MODE ?? "drain";
export const SLEEP = Number(process.env.BENCH_SLEEP ?? 60);
export const RECOVERY = process.env.BENCH_PROFILE === "recovery";
const WARM_UP = 20;
const ROWS_POOL = Number(process.env.BENCH_ROWS_POOL ?? 10);
const USUAL = ["single", "drain1", "drain2", "latency", "sustained", "offered", "crash", "zombie", "zombie_mid"];
export const PHASES = [...USUAL, "one_row"]; // `one_row`: handlers insert one; each adapter writes it in its library's own way
export const INSERT = "insert into bench_effects (seq, pgid) values ($1, $2)";
const SUSTAIN_BATCH = 500;
const OFFER_EVERY_MS = 10;

export const knob = (name, otherwise) => Number(process.env["BENCH_" + name.toUpperCase()] ?? otherwise);
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const version = (name) => JSON.parse(fs.readFileSync(`${BENCH_NODE_DIR}/node_modules/${name}/package.json`)).version;
export function* chunks(items, size) { for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size); }

const nowNs = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;
const seconds = () => performance.now() / 1000;
const payload = (seq) => ({ seq, kind: "order.created", pad: "x".repeat(64) });
const payloads = (start, count) => Array.from({ length: count }, (_, i) => payload(start + i));

export class Probe {
  n = 0;
  constructor() {
    const base = `${BENCH_RUN_DIR}/${process.pid}.${process.pid}`; // a session's leader: its group is its pid
    this.count = fs.openSync(base + ".count", "w+");
    this.lines = fs.openSync(base + ".lines", "a");
    this.buf = Buffer.alloc(16);
  }
  line(what, seq) { fs.writeSync(this.lines, `${what} ${seq} ${process.pid} ${nowNs()}\n`); }
  start(job) {
    this.buf.writeBigInt64LE(BigInt(++this.n), 0);
    if (this.n === 1) {
      this.buf.writeBigInt64LE(nowNs(), 8);
      fs.writeSync(this.count, this.buf, 0, 16, 0);
    } else fs.writeSync(this.count, this.buf, 0, 8, 0);
    if (MODE !== "drain" && MODE !== "one_row") this.line("start", job.seq);
  }
  async handle(job, client) { // client: what runs a statement, where handlers insert a row
    this.start(job);
    if (MODE === "one_row") await (client ?? this.rows()).query(INSERT, [job.seq, process.pid]);
    if (MODE !== "slow") return;
    const end = performance.now() + SLEEP * 1000;
    while (performance.now() < end) await sleep(Math.min(1000, end - performance.now()));
    await this.finish(job);
  }
  rows() { // a pool of pg, for a library that lends its handlers no connection
    this.pool ??= new (require_("pg").Pool)({ connectionString: DSN, max: ROWS_POOL });
    return this.pool;
  }
  async finish(job) {
    const { Client } = require_("pg");
    const client = new Client({ connectionString: DSN });
    await client.connect();
    await client.query("insert into bench_effects(seq, pgid) values ($1, $2)", [job.seq, process.pid]);
    await client.end();
    this.line("end", job.seq);
  }
}

async function single(system, jobs, cap) {
  for (let i = 0; i < WARM_UP; i++) await system.enqueueOne(payload(-i));
  const began = seconds();
  let done = 0;
  for (; done < jobs && seconds() - began <= cap; done++) await system.enqueueOne(payload(done));
  return { jobs: done, seconds: seconds() - began };
}

async function bulk(system, count, cap) {
  const jobs = payloads(0, count);
  const began = seconds();
  let done = 0;
  for (const batch of chunks(jobs, 5000)) {
    await system.enqueueMany(batch);
    done += batch.length;
    if (seconds() - began > cap) break;
  }
  return { jobs: done, seconds: seconds() - began };
}

async function latency(system, jobs, everyMs) {
  const sent = [];
  const base = performance.now() + 50;
  for (let i = 0; i < jobs; i++) {
    const wait = base + i * everyMs - performance.now();
    if (wait > 0) await sleep(wait);
    const called = nowNs();
    await system.enqueueOne(payload(i));
    sent.push([i, Number(called), Number(nowNs())]);
  }
  return { sent };
}

function handled() {
  const counts = fs.readdirSync(BENCH_RUN_DIR).filter((name) => name.endsWith(".count"));
  return counts.reduce((sum, name) => {
    const told = fs.readFileSync(`${BENCH_RUN_DIR}/${name}`);
    return sum + (told.length >= 8 ? Number(told.readBigInt64LE(0)) : 0);
  }, 0);
}

async function sustain(system, depth, duration) {
  const began = seconds();
  let made = 0, windowBegan = null, before = 0;
  while (seconds() - began < duration) {
    if (windowBegan === null && seconds() - began > duration / 3) [windowBegan, before] = [seconds(), handled()];
    if (made - handled() < depth) {
      await system.enqueueMany(payloads(made, SUSTAIN_BATCH));
      made += SUSTAIN_BATCH;
    } else await sleep(1);
  }
  return { jobs: made, handled: handled() - before, seconds: seconds() - windowBegan };
}

async function offer(system, rate, duration) {
  const sent = [];
  const size = rate * OFFER_EVERY_MS / 1000;
  const base = performance.now() + 50;
  for (let i = 0; i * OFFER_EVERY_MS < duration * 1000 && performance.now() - base < duration * 1000; i++) {
    const dueAt = base + i * OFFER_EVERY_MS;
    if (dueAt > performance.now()) await sleep(dueAt - performance.now());
    const due = Math.round((performance.timeOrigin + dueAt) * 1e6);
    await system.enqueueMany(payloads(i * size, size));
    for (let k = 0; k < size; k++) sent.push([i * size + k, due]);
  }
  return { sent };
}

const VERBS = { single, bulk, latency, sustain, offer };

export async function main(system) {
  const [verb, ...words] = process.argv.slice(2);
  let answer = {};
  if (verb === "meta") answer = system.meta;
  else if (verb === "setup") await system.setup();
  else if (verb === "worker") return system.worker(new Probe());
  else {
    if (!VERBS[verb]) throw new Error("unknown command " + verb);
    await system.open();
    answer = await VERBS[verb](system, ...words.map(Number));
    await system.close();
  }
  // Leave once it is written: a long answer does not fit a pipe at once.
  process.stdout.write("BENCH " + JSON.stringify(answer) + "\n", () => process.exit(0));
}
