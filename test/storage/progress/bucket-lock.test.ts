import { expect } from 'chai';
import { lockBuckets, unlockBuckets } from '../../../storage/progress/bucket-lock.ts';
import {
  enterBuckets,
  planSlice,
  readProgress,
  takePartition,
  updateDaysBefore,
} from '../../../storage/progress/slices.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

describe('the lock on the bucket rows', () => {
  let database: FreshDatabase;
  beforeEach(async () => {
    database = await freshDatabase();
  });
  afterEach(() => database.close());

  const take = (partition: number, on = database.postgres) => takePartition(on, partition, 'test');
  const waiting = async () => {
    const { rows } = await database.postgres.raw(
      `select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted
          and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows[0].n > 0;
  };

  it('says which days have daily rollups to whoever goes through it', async () => {
    const held = await take(0);
    await planSlice(database.postgres, held, { from: 0n, to: 5n });
    expect(await enterBuckets(database.postgres, held, { is_wide: false })).to.include({ days_before: 0 });
    await updateDaysBefore(database.postgres, 20_000);
    expect(await enterBuckets(database.postgres, held, { is_wide: false })).to.include({ days_before: 20_000 });
  });

  it('holds for a partition that is added, which has the days of the others', async () => {
    await lockBuckets(database.postgres, await take(0));
    await updateDaysBefore(database.postgres, 20_000);
    expect(await take(1)).to.deep.include({ gate: 'partition:0', days_before: 20_000 });
  });

  it('is opened for a partition that is added at the same moment', async () => {
    const held = await take(0);
    await lockBuckets(database.postgres, held);
    let opening: Promise<void> | undefined;
    await database.postgres.transaction(async (transaction) => {
      await take(1, transaction);
      // It is not to be seen yet: opening waits for it, or would pass it by.
      let isOpen = false;
      opening = unlockBuckets(database.postgres, held, (inside) => updateDaysBefore(inside, 20_000)).then(() => {
        isOpen = true;
      });
      await until('the bucket rows are unlocked, or wait', async () => isOpen || (await waiting()));
    });
    await opening;
    for (const state of await readProgress(database.postgres))
      expect(state).to.deep.include({ gate: null, days_before: 20_000 });
  });
});
