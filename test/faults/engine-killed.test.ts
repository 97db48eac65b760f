/**
 * kill -9 of the engine at the rename that gives a part of a table its name, just before and just after: what the statement
 * should have written is there once, whichever table it is, and whatever the engine had noted about it before.
 */
import { expect } from 'chai';
import { requestDailyRollups } from '../../storage/progress/daily-rollups-message.ts';
import { until } from '../support/until.ts';
import { tablePath } from './tables.ts';
import { type Faulty, startWithFaults } from './with-faults.ts';
import { FIRST, openWorld, type World } from './world.ts';

const DAY_MS = 86_400_000;
const SETTINGS = {
  LOG_PARTITIONS: '2',
  SLICE_WAIT_MS: '20',
  // Those that the test asks for are the only ones.
  DAY_ROWS_AFTER_DAYS: '20000',
};

type Place = { what: string; table: string; skip?: number; act(world: World): Promise<void> };

/** Once made they stay: each time there are some more. */
let dailyRollups = 0;
const sendSome = (world: World) => world.send(30);
const PLACES: Place[] = [
  { what: 'raw events', table: 'events', act: sendSome },
  { what: 'the second month of raw events', table: 'events', skip: 1, act: sendSome },
  { what: 'identities', table: 'event_identities', act: sendSome },
  { what: 'outcomes', table: 'event_outcomes', act: (world) => world.sendAgain(5) },
  { what: 'bucket rows', table: 'usage_buckets', act: sendSome },
  { what: 'the second month of bucket rows', table: 'usage_buckets', skip: 1, act: sendSome },
  { what: 'a back-fill', table: 'usage_buckets', act: (world) => world.makeMeter({ type: 'MAX', field: 'n' }) },
  { what: 'a void', table: 'event_corrections', act: (world) => world.void(world.ids[0]!) },
  { what: 'a replacement', table: 'event_corrections', act: (world) => world.replace(world.ids[1]!) },
  { what: 'the bucket rows of a void', table: 'usage_buckets', act: (world) => world.void(world.ids[2]!) },
  {
    what: 'daily rollups',
    table: 'usage_buckets',
    act: (world) =>
      world.service.withStores(async ({ postgres }) => {
        await requestDailyRollups(postgres, FIRST / DAY_MS + ++dailyRollups * 5);
      }),
  },
];

describe('the engine is killed at the rename of a part', function () {
  this.timeout(300_000);
  let faulty: Faulty;
  let faults: Faulty['faults'];
  let service: Faulty['service'];

  before(async () => {
    faulty = await startWithFaults(SETTINGS);
    ({ faults, service } = faulty);
  });
  after(() => faulty?.stop());

  for (const action of ['kill-before', 'kill-after'] as const) {
    for (const { what, table, skip = 0, act } of PLACES) {
      it(`${action === 'kill-before' ? 'before' : 'after'} it, of ${what}`, async () => {
        const world = await openWorld(service, `${action} ${what}`);
        const path = `${await tablePath(service, table)}tmp_insert_`;
        const { starts } = service;
        const fault = faults.set({ call: 'rename', action, path, skip });
        await act(world);
        await faults.untilMet(fault);
        await until('the service is started again', async () => service.starts > starts);
        await world.settled();
        expect(await world.differences()).to.deep.equal([]);
      });
    }
  }
});
