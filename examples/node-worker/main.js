// The worker's own program: its handlers, and when to stop.
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from './worker.js';

const handlers = {
  // Send the token to the outside world as a fence, and the key so that a second attempt charges nothing twice.
  async send_receipt({ order }, job) {
    const key = job.idempotencyKey('receipt');
    console.error(`receipt for order ${order}, key ${key}, token ${job.token}`);
    return { sent: true, key };
  },

  // For `faultline conformance --worker`.
  'conformance.echo': (args) => args,
  'conformance.fail': () => { throw new Error('as it was asked to'); },
  async 'conformance.sleep'({ seconds }, job) {
    await sleep(seconds * 1000, undefined, { signal: job.signal });
    return 'slept';
  },
};

const worker = new Worker({
  server: process.env.FAULTLINE_SERVER ?? 'grpc://localhost:8001',
  key: process.env.FAULTLINE_API_KEY,
  queues: (process.env.FAULTLINE_QUEUES ?? 'default').split(','),
  handlers,
});
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, async () => { await worker.stop(); process.exit(0); });
}
await worker.run();
