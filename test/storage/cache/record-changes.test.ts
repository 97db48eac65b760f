/** Every record that an answer about a running period is made of tells that it has changed, or has a reason why it need not. */
import { expect } from 'chai';
import { loadRealTimeBalance } from '../../../actions/lifecycle/wallets/real-time-balance.ts';
import { purgeRecordChanges, readChanges } from '../../../storage/cache/change-feed.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { connectPostgres, readUrl } from '../../../storage/postgres/pool/postgres.ts';
import { UsageCache } from '../../../storage/usage/usage-cache.ts';
import { fixed, startWorld, usage, type World } from '../../support/world.ts';

/** Tables that are read, whose changes change no such answer, or come to be known otherwise. */
const OTHERWISE: Record<string, string> = {
  slices: 'the progress, which each look reads',
  slice_ledger: 'how far the log is',
  log_outbox: 'how far the log is',
  log_records: 'how far the log is',
  log_partitions: 'how far the log is',
  log_segments: 'how far the log is',
  log_consumers: 'who reads the log',
  event_corrections: 'a correction is told as a rebuild of its rows',
  meter_barriers: 'a version that stops tells it, and nothing is kept of it after that',
  credit_note_line_items: 'they are written with their credit note',
  tax_rates: 'taxes come behind what usage is charged',
  tax_associations: 'likewise',
  secrets: 'who asks',
  users: 'who asks',
  tenants: 'who asks',
  environments: 'who asks',
  idempotency_keys: 'of a request',
  given_up_external_ids: 'it is written with its customer',
  record_changes: 'the changes themselves',
  record_changes_kept: 'likewise',
};

describe('changes of records', () => {
  let world: World;
  let id: string;

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z', usage_cache: new UsageCache() });
    await world.meter('calls');
    await world.plan('Pro', [fixed('10', { invoice_cadence: 'ADVANCE' }), usage('calls', '2')]);
    const feature = await world.post('/features', {
      name: 'Calls',
      lookup_key: 'calls',
      type: 'metered',
      meter_id: world.id('meter calls'),
    });
    await world.post('/entitlements', {
      plan_id: world.id('plan Pro'),
      feature_id: feature.id,
      feature_type: 'metered',
      usage_limit: 1,
    });
    const coupon = await world.post('/coupons', {
      name: 'Half',
      type: 'percentage',
      percentage_off: '50',
      cadence: 'once',
    });
    await world.subscribe('acme', 'Pro', { coupons: [coupon.id] });
    ({ id } = await world.post('/wallets', {
      external_customer_id: 'acme',
      currency: 'usd',
      initial_credits_to_load: '10',
    }));
    await world.use('acme', 'calls', 30, { at: '2026-01-10T00:00:00Z' });
    await world.on('2026-02-05');
    await world.finalize();
    await world.use('acme', 'calls', 7);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const paths = () => [
    `/wallets/${id}/balance/real-time`,
    `/customers/usage?customer_id=${world.id('customer acme')}`,
    `/customers/${world.id('customer acme')}/entitlements`,
  ];

  it('are told of every table that is read', async () => {
    const { postgres } = world.api.services;
    const { rows } = await postgres.raw(
      `select distinct event_object_table as name from information_schema.triggers where trigger_name ~ '_note_(insert|update|delete)$'`,
    );
    const told = new Set(rows.map(({ name }: { name: string }) => name));
    const read = new Set<string>();
    const note = ({ sql }: { sql: string }) => {
      for (const [, name] of sql.matchAll(/\b(?:from|join)\s+"?([a-z_]+)"?(?!\s*\()/g)) read.add(name!);
    };
    postgres.on('query', note);
    for (const path of paths()) await world.get(path);
    postgres.removeListener('query', note);
    const { rows: tables } = await postgres.raw(
      `select tablename as name from pg_tables where schemaname = 'public' and tablename = any(?)`,
      [[...read]],
    );
    const known = tables.map(({ name }: { name: string }) => name);
    expect(known).to.include.members(['invoices', 'subscriptions', 'entitlements', 'coupon_associations', 'wallets']);
    expect(known.filter((name: string) => !told.has(name) && !(name in OTHERWISE))).to.deep.equal([]);
  });

  it('are seen at once, whoever makes them, whenever their transaction began', async () => {
    const other = connectPostgres(readUrl(world.api.services.postgres));
    const transaction = await other.transaction();
    try {
      const left = async () => (await world.get(paths()[0]!)).real_time_balance;
      const before = Number(await left());
      await transaction('subscription_line_items')
        .where({ subscription_id: world.id('subscription acme') })
        .update({
          updated_at: world.now.toISOString(),
        });
      // It has begun, and others begin and end meanwhile.
      const topUp = { credits_to_add: '5', transaction_reason: 'FREE_CREDIT_GRANT', idempotency_key: 'more' };
      await world.post(`/wallets/${id}/top-up`, topUp);
      const changed = await left();
      expect(Number(changed)).to.equal(before + 5);
      await transaction('prices').where({ type: 'USAGE' }).update({ amount: '4' });
      expect(await left()).to.equal(changed);
      await transaction.commit();
      const { real_time_balance } = await loadRealTimeBalance(
        { ...world.api.services, usage_cache: undefined },
        await WalletModel.fetch(world.api.scope, id, { database: other }),
        world.now,
      );
      expect(await left()).to.equal(real_time_balance);
      expect(Number(real_time_balance)).to.be.below(before + 5);
    } finally {
      if (!transaction.isCompleted()) await transaction.rollback();
      await other.destroy();
    }
  });

  it('that were forgotten before they were looked at are taken for changes of everything', async () => {
    const { postgres } = world.api.services;
    // As of a process beside others: it looks when it is asked, and not for itself.
    const beside = connectPostgres(readUrl(postgres));
    const { number } = await readChanges(beside);
    await postgres('plans')
      .where({ id: world.id('plan Pro') })
      .update({ name: 'Pro 2' });
    await purgeRecordChanges(postgres);
    await purgeRecordChanges(postgres);
    expect((await postgres.raw('select 1 from record_changes')).rows).to.deep.equal([]);
    expect((await readChanges(beside)).known_since).to.equal(number + 1);
    await purgeRecordChanges(postgres);
    expect((await readChanges(beside)).known_since).to.equal(number + 1);
    await beside.destroy();
  });
}).timeout(120_000);
