import { DSN, PHASES, RECOVERY, chunks, knob, main, require_, version } from "./_adapter.mjs";
const { PgBoss } = require_("pg-boss");
const boss = (o = {}) => {
  const b = new PgBoss({ connectionString: DSN, ...o });
  b.on("error", (e) => console.error(String(e)));
  return b;
};

main({
  meta: {
    name: "pg-boss", backend: "postgres", versions: { "pg-boss": version("pg-boss"), pg: version("pg"), node: process.version },
    settings: "work(batchSize=500, burstWhenBatchFull, pollingIntervalSeconds=0.5, notify queue + useListenNotify), supervise on; insert() in chunks of 1000; send() for single",
    recovery: "default expireInSeconds=900; recovery profile: queue heartbeatSeconds=10 (the minimum), retryDelay=0, monitorIntervalSeconds=5, superviseIntervalSeconds=5",
    remaining: { sql: "select count(*) from pgboss.job where name='bench' and state < 'completed'" },
    snapshot: "select id, state::text, retry_count, retry_limit, started_on, completed_on, output from pgboss.job where name='bench'",
    manual_recover: "", single_note: "", bulk_note: "", phases: PHASES, row: "a pg.Pool of 10 connections; one insert, committed by itself",
  },
  async setup() {
    const b = boss(); await b.start();
    await b.createQueue("bench", { notify: true });
    await b.stop({ graceful: false });
  },
  async open() {
    this.b = boss({ max: 1, supervise: false, schedule: false });
    await this.b.start();
    if (RECOVERY) await this.b.updateQueue("bench", { heartbeatSeconds: 10, retryDelay: 0 });
  },
  async close() { await this.b.stop({ graceful: false }); },
  async enqueueOne(job) { await this.b.send("bench", job); },
  async enqueueMany(jobs) { for (const c of chunks(jobs, 1000)) await this.b.insert("bench", c.map((data) => ({ data }))); },
  async worker(probe) {
    const b = boss({ useListenNotify: true, ...(RECOVERY ? { superviseIntervalSeconds: 5, monitorIntervalSeconds: 5 } : {}) });
    await b.start();
    if (RECOVERY) await b.updateQueue("bench", { heartbeatSeconds: 10, retryDelay: 0 });
    await b.work("bench", { batchSize: knob("batch", 500), burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 2 },
      async (jobs) => { await Promise.all(jobs.map((j) => probe.handle(j.data))); });
  },
});
