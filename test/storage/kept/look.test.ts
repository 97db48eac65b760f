/** Who asks for a look at one time is told of one, each in a small portion of all; and it says the progress as Postgres has it. */
import { expect } from 'chai';
import type { Knex } from 'knex';
import { type Look, nextLook, whenLooked } from '../../../storage/kept/look.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

describe('a look', () => {
  let database: FreshDatabase;
  let postgres: Knex;
  before(async () => {
    database = await freshDatabase();
    postgres = database.postgres;
  });
  after(() => database.close());

  it('is one for all who ask at one time, and what the first do at the end is done before the last are told', async () => {
    const happened: string[] = [];
    const looks = await Promise.all(
      Array.from(
        { length: 32 },
        (_, n) =>
          new Promise<Look | null>((seen) =>
            whenLooked(postgres, (look) => {
              happened.push(`told ${n}`);
              // As node's HTTP server ends an answer.
              process.nextTick(() => {
                happened.push(`ended ${n}`);
                seen(look);
              });
            }),
          ),
      ),
    );
    expect(new Set(looks.map((look) => look!.number))).to.have.property('size', 1);
    const told = happened.filter((one) => one.startsWith('told'));
    expect(told).to.deep.equal(Array.from({ length: 32 }, (_, n) => `told ${n}`));
    for (let n = 0; n < 24; n++) expect(happened.indexOf(`ended ${n}`)).to.be.below(happened.indexOf(`told ${n + 8}`));
  });

  it('says how far each partition is, to the last digit, and is told of each step', async () => {
    expect((await nextLook(postgres)).progress).to.deep.equal([]);
    await postgres.raw(
      `insert into slices (partition, epoch, next_offset) values (10, 1, 0), (9, 2, 9007199254740993)`,
    );
    const [first, second, ...others] = (await nextLook(postgres)).progress;
    expect(others).to.deep.equal([]);
    expect(first).to.include({ partition: 9, epoch: 2n, next_offset: 9007199254740993n, phase: 'idle', gate: null });
    expect(first).to.include({ slice_from: null, slice_to: null, last_record: null, rebuilds: 0n, is_wide: false });
    expect(second).to.include({ partition: 10, epoch: 1n, next_offset: 0n });
    await postgres.raw(
      `update slices set slice_from = next_offset, slice_to = next_offset + 2, phase = 'raw', gate = 'one' where partition = 9`,
    );
    const [moved, still] = (await nextLook(postgres)).progress;
    expect(moved).to.deep.equal({
      ...first,
      slice_from: 9007199254740993n,
      slice_to: 9007199254740995n,
      phase: 'raw',
      gate: 'one',
    });
    expect(still).to.deep.equal(second);
  });
}).timeout(60_000);
