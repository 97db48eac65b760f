/**
 * The disk hangs under an insert for longer than its client waits, and then goes on: what was written then and what was
 * written meanwhile is there once.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { tablePath } from './tables.ts';
import { startWithFaults } from './with-faults.ts';
import { openWorld } from './world.ts';

/** A client waits for a minute (storage/clickhouse/clickhouse.ts). */
const HANG_MS = 75_000;

describe('the disk hangs under an insert', function () {
  this.timeout(400_000);

  it('of raw events, and of bucket rows', async () => {
    // Side by side: most of it is waiting.
    const found = await Promise.all([hangUnder('events'), hangUnder('usage_buckets')]);
    expect(found).to.deep.equal([[], []]);
  });
});

async function hangUnder(table: string): Promise<string[]> {
  const { service, faults, stop } = await startWithFaults({});
  try {
    const world = await openWorld(service, table);
    const path = `${await tablePath(service, table)}tmp_insert_`;
    const hang = faults.set({ call: 'sync', action: 'hold', argument: HANG_MS, path });
    await world.send(50);
    await faults.untilMet(hang);
    const over = pause(HANG_MS + 1_000);
    await world.sendAgain(20);
    await world.settled();
    // Whatever was tried instead: now the one that hung arrives as well.
    await over;
    await world.settled();
    return await world.differences();
  } finally {
    await stop();
  }
}
