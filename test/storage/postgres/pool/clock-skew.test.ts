/** A process whose clock is not that of Postgres says so (docs/operations.md). */
import { expect } from 'chai';
import { measureClockSkew, watchClock } from '../../../../storage/postgres/pool/clock-skew.ts';
import { type FreshDatabase, testStores } from '../../../support/stores.ts';
import { until } from '../../../support/until.ts';

const shifted = (seconds: number) => () => new Date(Date.now() + seconds * 1000);

describe('the clock of a process', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await (await testStores()).freshDatabase();
  });
  after(() => database.close());

  it('is compared with that of Postgres', async () => {
    expect(await measureClockSkew(database.postgres, shifted(0))).to.equal(0);
    // As far as the way there and back does not explain it, which takes some of it.
    expect(await measureClockSkew(database.postgres, shifted(300))).to.be.within(290, 300);
    expect(await measureClockSkew(database.postgres, shifted(-300))).to.be.within(-300, -290);
  });

  it('is told where it differs, at the start and later', async () => {
    const told: number[] = [];
    const logger = { warn: ({ skew_seconds }: { skew_seconds: number }) => told.push(skew_seconds) };
    let ahead = 0;
    const clock = () => shifted(ahead)();
    const unwatch = await watchClock(database.postgres, { clock, logger: logger as never }, 20);
    try {
      expect(told).to.deep.equal([]);
      ahead = 60;
      await until('it is told', async () => told.length > 0);
      expect(told[0]).to.be.within(50, 60);
    } finally {
      unwatch();
    }
    const late = await watchClock(database.postgres, { clock, logger: logger as never });
    late();
    expect(told.at(-1)).to.be.within(50, 60);
  });
});
