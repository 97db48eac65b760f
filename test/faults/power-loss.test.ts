/**
 * The power is lost while events and corrections come in, at chosen calls of the engine: what was acknowledged is there once,
 * whatever had not been brought to the disk.
 */
import { join } from 'node:path';
import { expect } from 'chai';
import type { ClickHouseClient } from '../../storage/clickhouse/clickhouse.ts';
import { signalTo } from '../support/service.ts';
import { until } from '../support/until.ts';
import { type Disk, mountDisk } from './disk.ts';
import { SupervisedService } from './supervised.ts';
import { type CallFault, type SystemCallFaults, systemCallFaults } from './system-calls.ts';
import { tablePath } from './tables.ts';
import { openWorld, type World } from './world.ts';

type Place = Pick<CallFault, 'call' | 'skip'> & { table: string; act(world: World): Promise<void> };

const PLACES: Place[] = [
  { call: 'rename', table: 'events', skip: 1, act: (world) => world.send(30) },
  { call: 'sync', table: 'event_identities', act: (world) => world.send(30, { singly: true }) },
  { call: 'rename', table: 'usage_buckets', skip: 1, act: (world) => world.send(30) },
  { call: 'sync', table: 'usage_buckets', skip: 2, act: (world) => world.void(world.ids[0]!) },
];

const MERGED = ['events', 'event_identities', 'event_corrections', 'usage_buckets'];

describe('the power is lost', function () {
  this.timeout(300_000);
  let disk: Disk;
  let faults: SystemCallFaults;
  let service: SupervisedService;

  before(async () => {
    disk = await mountDisk({ megabytes: 2_000 });
    faults = await systemCallFaults();
    const settings = { BOOTSTRAP_API_KEY: 'sk_test_faults', LOG_PARTITIONS: '2', SLICE_WAIT_MS: '20' };
    service = new SupervisedService(
      { DATA_DIR: join(disk.path, 'data'), ...settings, ...faults.intoEngine() },
      async () => {
        faults.clear();
        disk = await disk.losePower();
        service.moveTo(join(disk.path, 'data'));
      },
    );
    await service.current();
  });
  after(async () => {
    faults.clear();
    await service.stop();
    faults.close();
    await disk.unmount();
  });

  const losePower = async (): Promise<void> => {
    const { starts } = service;
    const running = await service.current();
    for (const { pid } of [running, ...running.processes()]) signalTo(pid, 'SIGKILL');
    await until('the service is started again', async () => service.starts > starts, 60_000);
  };

  it('when what was stored has just been merged, and the parts before are gone', async () => {
    const world = await openWorld(service, 'merged');
    await world.void(world.ids[0]!);
    await world.settled();
    await service.withStores(async ({ clickhouse }) => {
      for (const table of MERGED) await clickhouse.command({ query: `optimize table ${table} final` });
      // The engine clears away once a second what nobody reads any more.
      await until('the parts before are gone', async () => (await partsBefore(clickhouse)) === 0, 120_000);
    });
    await losePower();
    await world.settled();
    expect(await world.differences()).to.deep.equal([]);
  });

  for (const { call, table, skip = 0, act } of PLACES) {
    it(`at ${call} ${skip + 1} of a part of ${table}`, async () => {
      const world = await openWorld(service, `${call} ${table}`);
      // The engine stands still there, and then everything is gone at once.
      const path = `${await tablePath(service, table)}tmp_insert_`;
      const hold = faults.set({ call, action: 'hold', argument: 60_000, path, skip });
      const acting = act(world);
      await faults.untilMet(hold);
      await losePower();
      await acting;
      await world.send(5);
      await world.settled();
      expect(await world.differences()).to.deep.equal([]);
    });
  }
});

async function partsBefore(clickhouse: ClickHouseClient): Promise<number> {
  const query = `select toUInt32(count()) as n from system.parts
    where database = currentDatabase() and not active and table in (${MERGED.map((table) => `'${table}'`)})`;
  const answer = await clickhouse.query({ query, format: 'JSONEachRow' });
  return (await answer.json<{ n: number }>())[0]!.n;
}
