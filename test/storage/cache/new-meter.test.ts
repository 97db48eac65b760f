/**
 * A meter has no rows until it has reached every partition and its past is counted. Events that take effect before add no rows, so nothing
 * but the progress tells a cached answer of them.
 */
import { expect } from 'chai';
import pg from 'pg';
import { readChanges } from '../../../storage/cache/change-feed.ts';
import { readUrl } from '../../../storage/postgres/pool/postgres.ts';
import { UsageCache } from '../../../storage/usage/usage-cache.ts';
import { isLogProcessed } from '../../support/settled.ts';
import { until } from '../../support/until.ts';
import { startWorld, usage, type World } from '../../support/world.ts';

for (const beside of [false, true])
  describe(`a balance of a meter without rows, ${beside ? 'beside the pipeline' : 'in its process'}`, () => {
    let world: World;
    let stranger: pg.Client;
    before(async () => {
      world = await startWorld({
        now: '2026-01-10T00:00:00Z',
        usage_cache: new UsageCache({ isFed: beside }),
        beside,
      });
      stranger = new pg.Client({ connectionString: readUrl(world.api.services.postgres) });
      await stranger.connect();
    });
    after(async () => {
      await stranger.end();
      await world.stop();
    });

    it('includes each event that its `as_of` includes', async () => {
      // The message that begins the counting of the meter is held back.
      await stranger.query('create rule hold as on insert to log_outbox do instead nothing');
      await world.meter('calls');
      await stranger.query('drop rule hold on log_outbox');
      await world.plan('Calls', [usage('calls', '1')]);
      await world.subscribe('acme', 'Calls');
      const wallet = { external_customer_id: 'acme', currency: 'usd', initial_credits_to_load: '4' };
      const { id } = await world.post('/wallets', wallet);
      const left = async () => (await world.get(`/wallets/${id}/balance/real-time`)).real_time_balance;
      expect(await left()).to.equal('4');
      await world.use('acme', 'calls', 3);
      await until('the event has its effect', () => isLogProcessed(world.api.services.log));
      // Another process sees the slice in its next change snapshot.
      if (beside) await readChanges(world.api.services.postgres);
      expect(await left()).to.equal('1');
      expect(await left()).to.equal('1');
      // Without a notification, as if it were lost: the relay polls.
      await stranger.query(
        `insert into log_outbox (tenant_id, environment_id, body)
         select tenant_id, environment_id, jsonb_build_object('type', 'meter', 'meter_id', meter_id, 'version', version)
           from meter_versions`,
      );
      await world.waitForPipeline();
      expect(await left()).to.equal('1');
    });
  }).timeout(60_000);
