/**
 * A consumer in a process of its own: `reading-process.ts <postgres_url> <lease_ms> <alive_ms>`. It says what happens to it, one
 * word a line. A record `block <ms>` keeps its event loop busy for so long, without a pause.
 */
import { openEmbeddedLog } from '../../../storage/log/embedded/embedded.ts';
import { connectPostgres } from '../../../storage/postgres/postgres.ts';
import { Reader, textOf } from './contract.ts';

const [postgres_url, lease_ms, alive_ms] = process.argv.slice(2) as [string, string, string];
const say = (line: string) => process.stdout.write(`${line}\n`);

class BlockedReader extends Reader {
  override async assigned(partition: number) {
    say('assigned');
    return super.assigned(partition);
  }

  override async process(batch: Parameters<Reader['process']>[0]) {
    for (const record of batch.records) {
      const [, ms] = /^block (\d+)$/.exec(textOf(record)) ?? [];
      if (ms === undefined) continue;
      say('blocked');
      const end = performance.now() + Number(ms);
      while (performance.now() < end);
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
  partition_count: 1,
  append_timeout_ms: 5_000,
  linger_ms: 0,
  lease_ms: Number(lease_ms),
  alive_ms: Number(alive_ms),
});
await log.consume(new BlockedReader());
say('consumes');
