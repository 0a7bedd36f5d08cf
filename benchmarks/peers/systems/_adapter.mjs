// The Node side of _adapter.py: same command line, same probe files.
import fs from "node:fs";
import { createRequire } from "node:module";
// node_modules lives outside the repository: resolve packages from $BENCH_NODE_DIR
export const require_ = createRequire(process.env.BENCH_NODE_DIR + "/");
export const DSN = process.env.BENCH_DSN;
export const MODE = process.env.BENCH_MODE ?? "drain";
export const SLEEP = Number(process.env.BENCH_SLEEP ?? 60);
export const RECOVERY = process.env.BENCH_PROFILE === "recovery";
export const knob = (k, d) => Number(process.env["BENCH_" + k.toUpperCase()] ?? d);
export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const now = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;
const payload = (seq) => ({ seq, kind: "order.created", pad: "x".repeat(64) });
export const version = (p) => JSON.parse(fs.readFileSync(process.env.BENCH_NODE_DIR + "/node_modules/" + p + "/package.json")).version;
export function* chunks(a, n) { for (let i = 0; i < a.length; i += n) yield a.slice(i, i + n); }

export class Probe {
  n = 0;
  constructor() {
    const base = `${process.env.BENCH_RUN_DIR}/${process.pid}.${process.pid}`; // session leader: pgid == pid
    this.count = fs.openSync(base + ".count", "w+");
    this.lines = fs.openSync(base + ".lines", "a");
    this.buf = Buffer.alloc(16);
  }
  line(what, seq) { fs.writeSync(this.lines, `${what} ${seq} ${process.pid} ${now()}\n`); }
  start(job) {
    this.buf.writeBigInt64LE(BigInt(++this.n), 0);
    if (this.n === 1) { this.buf.writeBigInt64LE(now(), 8); fs.writeSync(this.count, this.buf, 0, 16, 0); }
    else fs.writeSync(this.count, this.buf, 0, 8, 0);
    if (MODE !== "drain") this.line("start", job.seq);
  }
  async handle(job) {
    this.start(job);
    if (MODE !== "slow") return;
    const end = performance.now() + SLEEP * 1000;
    while (performance.now() < end) await sleep(Math.min(1000, end - performance.now()));
    const { Client } = require_("pg");
    const c = new Client({ connectionString: DSN });
    await c.connect();
    await c.query("insert into bench_effects(seq, pgid) values ($1, $2)", [job.seq, process.pid]);
    await c.end();
    this.line("end", job.seq);
  }
}

export async function main(s) {
  const [cmd, a, b] = process.argv.slice(2);
  let res = {};
  const t = () => performance.now() / 1000;
  if (cmd === "meta") res = s.meta;
  else if (cmd === "setup") await s.setup();
  else if (cmd === "worker") { await s.worker(new Probe()); return; }
  else {
    await s.open();
    if (cmd === "single") {
      for (let i = 0; i < 20; i++) await s.enqueueOne(payload(-i));
      const t0 = t(); let done = 0;
      for (; done < Number(a) && t() - t0 <= Number(b); done++) await s.enqueueOne(payload(done));
      res = { jobs: done, seconds: t() - t0 };
    } else if (cmd === "bulk") {
      const jobs = Array.from({ length: Number(a) }, (_, i) => payload(i));
      let done = 0; const t0 = t();
      for (const c of chunks(jobs, 5000)) { await s.enqueueMany(c); done += c.length; if (t() - t0 > Number(b)) break; }
      res = { jobs: done, seconds: t() - t0 };
    } else if (cmd === "latency") {
      const sent = []; const base = performance.now() + 50;
      for (let i = 0; i < Number(a); i++) {
        const d = base + i * Number(b) - performance.now();
        if (d > 0) await sleep(d);
        const x = now(); await s.enqueueOne(payload(i)); sent.push([i, Number(x), Number(now())]);
      }
      res = { sent };
    } else throw new Error("unknown command " + cmd);
    await s.close();
  }
  console.log("BENCH " + JSON.stringify(res));
  process.exit(0);
}
