import { DSN, MODE, PHASES, chunks, knob, main, require_, version } from "./_adapter.mjs";
const { run, makeWorkerUtils, Logger } = require_("graphile-worker");
const quiet = new Logger(() => (level, msg) => { if (level === "error") console.error(msg); });
const n = knob("concurrency", 24);

main({
  meta: {
    name: "graphile-worker", backend: "postgres", versions: { "graphile-worker": version("graphile-worker"), pg: version("pg"), node: process.version },
    settings: "concurrentJobs=24, maxPoolSize=26, localQueue.size=500 with refetchDelay default, completeJobBatchDelay=0, failJobBatchDelay=0 (docs: performance#batching); addJobs() in chunks of 1000",
    recovery: "none automatic below 4 hours (hard-coded lock expiry); documented manual call graphile_worker.force_unlock_workers() is used in the zombie test",
    remaining: { sql: "select count(*) from graphile_worker._private_jobs" },
    snapshot: "select id, attempts, max_attempts, locked_by, locked_at, last_error from graphile_worker._private_jobs",
    manual_recover: "select graphile_worker.force_unlock_workers(array(select distinct locked_by from graphile_worker._private_jobs where locked_by is not null))",
    single_note: "", bulk_note: "", phases: PHASES, row: "helpers.withPgClient, its own pool; one insert, committed by itself",
  },
  async setup() { const u = await makeWorkerUtils({ connectionString: DSN, logger: quiet }); await u.migrate(); await u.release(); },
  async open() { this.u = await makeWorkerUtils({ connectionString: DSN, maxPoolSize: 2, logger: quiet }); },
  async close() { await this.u.release(); },
  async enqueueOne(job) { await this.u.addJob("bench", job); },
  async enqueueMany(jobs) {
    for (const c of chunks(jobs, 1000)) await this.u.addJobs(c.map((payload) => ({ identifier: "bench", payload })));
  },
  async worker(probe) {
    const batch = knob("localqueue", 500);
    const runner = await run({
      preset: { worker: { connectionString: DSN, concurrentJobs: n, maxPoolSize: n + 2, logger: quiet,
        ...(batch > 1 ? { localQueue: { size: batch }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } : {}) } },
      taskList: {
        bench: MODE === "one_row"
          ? (job, helpers) => helpers.withPgClient((client) => probe.handle(job, client))
          : (job) => probe.handle(job),
      },
    });
    await runner.promise;
  },
});
