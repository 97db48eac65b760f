/** Appends to the embedded log with files until it is killed: `appending-process.ts <postgres url> <directory>`; says what was acknowledged. */
import { setTimeout as pause } from 'node:timers/promises';
import { openEmbeddedLog } from '../../../../storage/log/embedded/embedded.ts';
import { connectPostgres } from '../../../../storage/postgres/pool/postgres.ts';
import { entry } from '../contract.ts';

const [postgres_url = '', directory = ''] = process.argv.slice(2);
const log = await openEmbeddedLog(connectPostgres(postgres_url), {
  partition_count: 1,
  append_timeout_ms: 5_000,
  sole_owner: true,
  directory,
  inline_bytes_max: 2_000,
  segment_bytes_max: 30_000,
});
const sender = async (name: string) => {
  for (let number = 0; ; number++) {
    const text = `${name} ${number} of ${process.pid}`;
    await log.append([entry(0, text.padEnd(number % 3 === 0 ? 10 : 3_000, '.'))]);
    process.stdout.write(`${text}\n`);
    if (number % 5 === 0) await pause(1);
  }
};
await Promise.all(['one', 'two', 'three'].map(sender));
