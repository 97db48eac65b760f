/**
 * The statement that stores a correction is held up on its way for longer than anybody waits for it, and then arrives, or is
 * lost: the correction has its effect once, and so has a second one.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { temporaryDirectory } from '../support/service.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { type StatementWay, statementsTo } from './statements.ts';
import { SupervisedService } from './supervised.ts';
import { openWorld } from './world.ts';

/** Longer than a statement of a correction was ever given. */
const HELD_MS = 17_000;

describe('a correction is held up on its way to the store', function () {
  this.timeout(300_000);
  const directory = temporaryDirectory();
  let database: FreshDatabase;
  let way: StatementWay;
  let service: SupervisedService;

  before(async () => {
    database = await freshDatabase();
    way = await statementsTo(database.clickhouse_url);
    service = new SupervisedService({
      DATA_DIR: join(directory.path, 'data'),
      CLICKHOUSE_URL: way.url,
      BOOTSTRAP_API_KEY: 'sk_test_faults',
      SLICE_WAIT_MS: '20',
    });
    await service.current();
  });
  after(async () => {
    await service.stop();
    await way.close();
    await database.close();
    directory.remove();
  });

  /** The first of its kind; the ones after it pass. */
  const meetOne = (fate: 'held' | 'late') => {
    let met = false;
    way.meet(({ kind }) => {
      if (met || kind !== 'insert into event_corrections') return undefined;
      met = true;
      return fate;
    });
  };

  it('and arrives in the end', async () => {
    const world = await openWorld(service, 'arrives');
    meetOne('held');
    await world.void(world.ids[0]!);
    await until('it is held', async () => way.waiting > 0);
    await pause(HELD_MS);
    await way.release();
    await world.settled();
    await world.void(world.ids[1]!);
    await world.settled();
    expect(await world.differences()).to.deep.equal([]);
  });

  it('and its sender gives up; it arrives when another has taken effect', async () => {
    const world = await openWorld(service, 'gives up');
    meetOne('late');
    await world.replace(world.ids[0]!);
    await until('it is on its way', async () => way.waiting > 0);
    await world.settled();
    await world.void(world.ids[0]!);
    await world.settled();
    await way.release();
    await world.settled();
    expect(await world.differences()).to.deep.equal([]);
  });
});
