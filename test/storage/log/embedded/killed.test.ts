/** kill -9 of the process that appends to a log with files: what was acknowledged is there, byte by byte, and no file is left over. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { openEmbeddedLog } from '../../../../storage/log/embedded/embedded.ts';
import { createChance } from '../../../support/seeds.ts';
import { temporaryDirectory } from '../../../support/service.ts';
import { freshDatabase } from '../../../support/stores.ts';
import { Reader, textOf } from '../contract.ts';

const KILLS = 6;

describe('the embedded log with files, killed', () => {
  it('holds everything that was acknowledged', async () => {
    const database = await freshDatabase();
    const place = temporaryDirectory();
    const directory = join(place.path, 'log');
    const chance = createChance(7);
    const acknowledged: string[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      acknowledged.push(...(await appendUntilKilled(database.postgres_url, directory, chance.whole(0, 300))));
    }
    // A file without a row, as a kill between the two leaves it, goes with the next start; so each file has its row.
    const log = await openEmbeddedLog(database.postgres, {
      partition_count: 1,
      append_timeout_ms: 5_000,
      linger_ms: 0,
      sole_owner: true,
      directory,
    });
    const { rows } = await database.postgres.raw(`select segment || '.segment' as name from log_segments`);
    expect(readdirSync(directory).sort()).to.deep.equal(rows.map(({ name }: { name: string }) => name).sort());
    const reader = new Reader();
    const consumer = await log.consume(reader);
    const [lag] = await log.lag();
    await reader.until(() => BigInt(reader.records.length) >= lag!.end_offset || reader.errors.length > 0);
    expect(reader.errors).to.deep.equal([]);
    const found = new Set(reader.records.map((record) => textOf(record).replace(/\.+$/, '')));
    expect(acknowledged.filter((text) => !found.has(text))).to.deep.equal([]);
    expect(acknowledged.length).to.be.above(KILLS * 5);
    await consumer.stop();
    await log.close();
    await database.close();
    place.remove();
  }).timeout(60_000);
});

/** What it said it had appended; it is killed some time after it has begun. */
async function appendUntilKilled(postgres_url: string, directory: string, after_ms: number): Promise<string[]> {
  const file = fileURLToPath(new URL('./appending-process.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', './process/typescript.mjs', file, postgres_url, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (chunk) => (said += chunk));
  await once(child.stdout, 'data');
  await pause(after_ms);
  child.kill('SIGKILL');
  await once(child, 'close');
  // The last line may have been cut off.
  return said.split('\n').slice(0, -1);
}
