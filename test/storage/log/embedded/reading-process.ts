/**
 * Consumers in a process of their own, one for each partition: `reading-process.ts <postgres_url> <lease_ms> <alive_ms> <consumers>`.
 * It says what happens to them, one word a line, `thread` when one is made, and `shared` when each consumer has a partition: the first
 * may lease all of them, and releases those above its share at its next renewal. A record `block <ms>` blocks its event loop for
 * so long; `stop` stops the consumer that reads it; `end` ends the thread.
 */
import type { Worker } from 'node:worker_threads';
import { openEmbeddedLog } from '../../../../storage/log/embedded/embedded.ts';
import { connectPostgres } from '../../../../storage/postgres/pool/postgres.ts';
import { until } from '../../../support/until.ts';
import { Reader, textOf } from '../contract.ts';

const [postgres_url, lease_ms, alive_ms, consumers] = process.argv.slice(2) as [string, string, string, string];
const say = (line: string) => process.stdout.write(`${line}\n`);

const threads: Worker[] = [];
process.on('worker', (thread: Worker) => {
  threads.push(thread);
  say('thread');
});

class BlockedReader extends Reader {
  stop = async () => {};

  override async assigned(partition: number) {
    say('assigned');
    return super.assigned(partition);
  }

  override async process(batch: Parameters<Reader['process']>[0]) {
    for (const record of batch.records) {
      if (textOf(record) === 'stop') void this.stop().then(() => say('stopped'));
      if (textOf(record) === 'end') await threads.at(-1)!.terminate();
      const [, ms] = /^block (\d+)$/.exec(textOf(record)) ?? [];
      if (ms === undefined) continue;
      say('blocked');
      // A wait blocks the event loop as work does, and leaves the CPU to other tests.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(ms));
      say(batch.isOwner() ? 'ours' : 'lost');
    }
    return super.process(batch);
  }

  override async revoked(partition: number) {
    say('revoked');
    return super.revoked(partition);
  }
}

const log = await openEmbeddedLog(connectPostgres(postgres_url), {
  partition_count: Number(consumers),
  append_timeout_ms: 5_000,
  linger_ms: 0,
  lease_ms: Number(lease_ms),
  alive_ms: Number(alive_ms),
});
const readers = await Promise.all(
  Array.from({ length: Number(consumers) }, async () => {
    const reader = new BlockedReader();
    const consumer = await log.consume(reader);
    reader.stop = () => consumer.stop();
    return reader;
  }),
);
await until('each has a partition', async () => readers.every(({ owned }) => owned.size === 1));
say('shared');
