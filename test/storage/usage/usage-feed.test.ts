/** Answers that an interface keeps without a pipeline in its process (docs/decisions/0007-cached-answers.md). */
import { expect } from 'chai';
import { register } from 'prom-client';
import { toUs } from '../../../core/foundation/time/instant.ts';
import type { BucketRow } from '../../../core/metering/bucket-aggregator.ts';
import { readChanges } from '../../../storage/cache/change-feed.ts';
import { runWithRecorder } from '../../../storage/postgres/interceptors/dependency-recorder.ts';
import { buildNotification, NO_ROWS, readSliceNotifications } from '../../../storage/progress/slice-notifications.ts';
import type { UsageResult } from '../../../storage/usage/live-usage.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { UsageCache } from '../../../storage/usage/usage-cache.ts';
import { UsageFeed } from '../../../storage/usage/usage-feed.ts';
import { until } from '../../support/until.ts';
import { startWorld, usage, type World } from '../../support/world.ts';

describe('usage that is fed from other processes', () => {
  let world: World;
  let wallet: { id: string };
  let used = 0;
  const usage_cache = new UsageCache({ isFed: true });

  before(async () => {
    world = await startWorld({ now: '2026-01-10T00:00:00Z', usage_cache, beside: true });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '2')]);
    await world.subscribe('acme', 'Calls');
    wallet = await world.post('/wallets', { external_customer_id: 'acme', currency: 'usd' });
  });
  after(() => world.stop());

  const use = async (n: number) => {
    await world.use('acme', 'calls', n);
    await world.waitForPipeline();
    used += n;
  };
  /** What an answer was made of; it is always right. */
  const asked = async (): Promise<string> => {
    const before = await answers();
    const { real_time_balance } = await world.get(`/wallets/${wallet.id}/balance/real-time`);
    expect(Number(real_time_balance)).to.equal(-2 * used);
    const after = await answers();
    return ['gathered', 'arrived'].find((from) => after[from]! > before[from]!) ?? 'kept';
  };
  const followed = () =>
    until('slices are told', async () => {
      await use(1);
      return (await asked()) === 'arrived';
    });

  it('brings answers forward, once somebody wants it', async () => {
    await use(3);
    expect(await asked()).to.equal('gathered');
    await followed();
    for (const n of [5, 7]) {
      await use(n);
      expect(await asked()).to.equal('arrived');
      expect(await asked()).to.equal('kept');
    }
    await Promise.all([use(1), use(2), use(3)]);
    expect(await asked(), 'several slices').to.equal('arrived');
  });

  it('what nobody has told is gathered anew, and goes on from there', async () => {
    await use(4);
    await world.api.services.postgres.raw('delete from told_slices');
    expect(await asked()).to.equal('gathered');
    await use(4);
    expect(await asked()).to.equal('arrived');
    await use(4);
    await world.api.services.postgres.raw('delete from told_slices');
    await use(5);
    expect(await asked(), 'also where a later one is there').to.equal('gathered');
  });

  it('another owner of the partition, and rows that are written anew, are gathered anew', async () => {
    await followed();
    await world.pausePipeline();
    await world.resumePipeline();
    await use(2);
    expect(await asked()).to.equal('gathered');
    const event_id = 'wrong';
    await world.send([world.event('acme', 'calls', { n: 9, event_id })]);
    await world.waitForPipeline();
    used += 9;
    await asked();
    await world.api.request('POST', `/events/${event_id}/void`, { body: { reason: 'wrong' } });
    await until('it is voided', async () => {
      const { items } = await world.get(`/events/${event_id}/corrections`);
      return items.every(({ state }: { state: string }) => state === 'applied');
    });
    used -= 9;
    expect(await asked()).to.equal('gathered');
    await followed();
  });

  it('what is read to be kept is fed first, where slices have landed since anybody looked', async () => {
    await followed();
    await use(1);
    const seen: boolean[] = [];
    const notes = {
      row: () => {},
      recordUsageQuery: () => {},
      read: ({ progress }: UsageResult) => seen.push(usage_cache.isAt(progress!)),
    };
    const [start, end] = [Date.parse('2026-01-10T00:00:00Z'), Date.parse('2026-02-10T00:00:00Z')];
    const range = { start_us: toUs(start), end_us: toUs(end), now_ms: world.now.getTime() };
    const asked = { meter: { id: world.id('meter calls') }, external_customer_ids: ['acme'], ...range };
    const { services, scope } = world.api;
    const { usage } = await runWithRecorder(notes, () => readUsageReport(services, scope, asked));
    expect([usage[0]!.total.value.toNumber(), seen]).to.deep.equal([used, [true]]);
  });

  it('slices that were told after a look are none of it, whoever has told them', async () => {
    const { postgres } = world.api.services;
    const memory = new UsageCache({ isFed: true });
    const feed = new UsageFeed(postgres, memory);
    const [state] = (await readChanges(postgres)).progress;
    const at = (next_offset: bigint, epoch = 5n) => [{ ...state!, partition: 78, epoch, next_offset, rebuilds: 0n }];
    await feed.feedUntil(at(10n));
    // Behind the look a new owner of the partition goes on.
    await postgres.raw(
      `insert into told_slices (partition, epoch, from_offset, to_offset, rows) values (78, 5, 10, 12, ?), (78, 6, 12, 14, ?)`,
      [NO_ROWS, NO_ROWS],
    );
    await feed.feedUntil(at(12n));
    expect(memory.isAt(at(12n)), 'as far as it was looked').to.equal(true);
    await feed.feedUntil(at(14n, 6n));
    expect(memory.isAt(at(14n, 6n))).to.equal(true);
  });

  it('rows come back as they were', async () => {
    const { postgres } = world.api.services;
    const place = {
      tenant_id: 't',
      environment_id: 'e',
      external_customer_id: '"acme"\n',
      group_key: '',
      size: 'HOUR' as const,
    };
    const rows: BucketRow[] = [
      {
        ...place,
        meter_id: 'm1',
        bucket_start_us: 1_768_003_200_000_000,
        first_us: 1_768_003_200_000_001,
        last_us: null,
        count: 2,
        sum: -(10n ** 40n),
        weighted_sum: 7n,
        min: -1n,
        max: null,
        latest: { timestamp_us: 5, event_id: 'e1', value: 3n },
        uniques: ['a', 'b'],
      },
    ];
    const text = buildNotification(rows, () => 4)!;
    await postgres.raw(
      `insert into told_slices (partition, epoch, from_offset, to_offset, rows) values (77, 5, 10, 12, ?)`,
      [text],
    );
    const [told, ...others] = await readSliceNotifications(postgres, [{ partition: 77, at: 10n }]);
    expect(others).to.deep.equal([]);
    expect({ ...told, getVersion: told!.getVersion('m1') }).to.deep.equal({
      partition: 77,
      epoch: 5n,
      from: 10n,
      to: 12n,
      rows,
      getVersion: 4,
    });
    expect(await readSliceNotifications(postgres, [{ partition: 77, at: 11n }])).to.deep.equal([]);
    // Of what does not compress, as much as nobody reads at one go.
    await postgres.raw(
      `update told_slices set rows = (select string_agg(md5(random()::text), '') from generate_series(1, 140000)) where partition = 77`,
    );
    expect(await readSliceNotifications(postgres, [{ partition: 77, at: 10n }])).to.deep.equal([]);
    const many = Array.from({ length: 60_000 }, () => rows[0]!);
    expect(
      buildNotification(many, () => 4),
      'what is too much is not told',
    ).to.equal(null);
  });
}).timeout(120_000);

async function answers(): Promise<Record<string, number>> {
  const { values } = await register.getSingleMetric('farthing_running_answers_total')!.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.from), value]));
}
