/** Who asks at one time is gathered together, and each gets its own answer, or its own failure. */
import { expect } from 'chai';
import type { Knex } from 'knex';
import { GatherBatchLoader, type GatherContext } from '../../../storage/cache/gather-batch-loader.ts';
import { joinBatch } from '../../../storage/concurrency/batched.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

const ONE = { tenant_id: 'tenant_1', environment_id: 'env_1' };
const OTHER = { tenant_id: 'tenant_2', environment_id: 'env_2' };

describe('answers that are gathered', () => {
  let database: FreshDatabase;
  let postgres: Knex;
  let statements: number[];
  before(async () => {
    database = await freshDatabase();
    postgres = database.postgres;
  });
  beforeEach(() => {
    statements = [];
  });
  after(() => database.close());

  /** Asks for a number, with all who do so at one time. */
  const doubled = async ({ database: on }: GatherContext, number: number): Promise<number> =>
    joinBatch(on, { key: 'doubled', query: number }, async (asked) => {
      statements.push(asked.length);
      const { rows } = await on.raw(
        'select n * 2 as twice from unnest(?::int[]) with ordinality as o (n, nth) order by nth',
        [[...asked]],
      );
      return rows.map(({ twice }: { twice: number }) => twice);
    });
  const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));

  it('at one time: in one transaction, by one statement, as of the last who asked', async () => {
    const desk = new GatherBatchLoader(postgres);
    const seen = new Set<GatherContext['database']>();
    const nows = new Set<number>();
    const asked = Array.from({ length: 40 }, (_, number) =>
      desk.load(ONE, at(number), async (gathering) => {
        seen.add(gathering.database);
        nows.add(gathering.now.getTime());
        return doubled(gathering, number);
      }),
    );
    expect(await Promise.all(asked)).to.deep.equal(asked.map((_, number) => number * 2));
    expect(statements, 'no more than 32 at once').to.have.members([32, 8]);
    expect(seen.has(postgres)).to.equal(false);
    expect([...nows]).to.have.members([at(31).getTime(), at(39).getTime()]);
  });

  it('alone: without a transaction', async () => {
    const desk = new GatherBatchLoader(postgres);
    const on = await desk.load(ONE, at(0), async ({ database: used }) => used);
    expect(on).to.equal(postgres);
  });

  it('whoever fails is told why, and spoils no other, not even by what ends the transaction', async () => {
    const desk = new GatherBatchLoader(postgres);
    const asked = [0, 1, 2, 3].map((number) =>
      desk.load(ONE, at(0), async (gathering) => {
        if (number === 1) throw new Error('of its own');
        if (number === 2) await gathering.database.raw('select 1 / 0');
        return doubled(gathering, number);
      }),
    );
    const ended = await Promise.allSettled(asked);
    expect(ended.map((one) => (one.status === 'fulfilled' ? one.value : (one.reason as Error).message))).to.deep.equal([
      0,
      'of its own',
      'select 1 / 0 - division by zero',
      6,
    ]);
  });

  it('an environment that waits holds up no other', async () => {
    const desk = new GatherBatchLoader(postgres);
    let goOn: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const slow = Array.from({ length: 100 }, () => desk.load(ONE, at(0), () => waiting));
    const quick = Array.from({ length: 3 }, (_, number) => desk.load(OTHER, at(0), (one) => doubled(one, number)));
    expect(await Promise.all(quick)).to.deep.equal([0, 2, 4]);
    goOn();
    await Promise.all(slow);
  });
});
