/** Whatever ends a connection in the middle, an event is told if and only if its change was committed. */

import { expect } from 'chai';
import fc from 'fast-check';
import { archiveCustomer } from '../../../actions/catalog/customers/archive-customer.ts';
import { changeCustomer } from '../../../actions/catalog/customers/change-customer.ts';
import { createCustomer } from '../../../actions/catalog/customers/create-customer.ts';
import { connectPostgres } from '../../../storage/postgres/pool/postgres.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('telling what was changed', () => {
  let api: TestApi;
  let made = 0;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  it('happens if and only if the change is committed, whatever dies', async function () {
    this.timeout(60_000);
    const { postgres } = api.services;
    const url = (postgres.client.config.connection as { connectionString: string }).connectionString;
    const author = { user_id: 'user_1', now: api.services.clock() };
    const deed = fc.record({
      kind: fc.constantFrom('change' as const, 'archive' as const, 'create' as const),
      // As many round trips as a deed has, about: before, between and after any of them.
      killed_after_ms: fc.option(fc.double({ min: 0, max: 6, noNaN: true })),
    });
    let killed = 0;
    let survived = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(deed, { minLength: 1, maxLength: 6 }), async (deeds) => {
        for (const { kind, killed_after_ms } of deeds) {
          made += 1;
          const { id } = await createCustomer({ postgres }, api.scope, {
            fields: { external_id: `a-${made}` },
            author,
          });
          // A process of its own, as far as Postgres knows: its connection is all that there is of it.
          const victim = connectPostgres(url, { max: 1, application_name: `victim ${made}` } as never);
          const { rows } = await victim.raw('select pg_backend_pid() as pid');
          const done =
            kind === 'create'
              ? createCustomer({ postgres: victim }, api.scope, { fields: { external_id: `b-${made}` }, author })
              : kind === 'change'
                ? changeCustomer({ postgres: victim }, api.scope, { id, changes: { name: `b-${made}` }, author })
                : archiveCustomer({ postgres: victim }, api.scope, { id, author });
          const outcome = done.then(
            () => (survived += 1),
            () => (killed += 1),
          );
          if (killed_after_ms !== null) {
            await new Promise((resolve) => setTimeout(resolve, killed_after_ms));
            await postgres.raw('select pg_terminate_backend(?)', [rows[0].pid]);
          }
          await outcome;
          await victim.destroy().catch(() => undefined);
        }
        await expectTold();
      }),
      { numRuns: 25 },
    );
    expect([killed, survived], 'some of each').to.not.include(0);
  });

  /** The records say what was done to them; the events must say the same. */
  async function expectTold() {
    const { postgres } = api.services;
    const customers = await postgres('customers').orderBy('id');
    const events = await postgres('system_events').orderBy('sequence');
    const expected = customers.flatMap(({ id, name, status, external_id }) => [
      `${id} customer.created`,
      ...(name !== external_id ? [`${id} customer.updated`] : []),
      ...(status === 'archived' ? [`${id} customer.deleted`] : []),
    ]);
    expect(events.map(({ entity_id, event_name }) => `${entity_id} ${event_name}`).sort()).to.deep.equal(
      expected.sort(),
    );
  }
});
