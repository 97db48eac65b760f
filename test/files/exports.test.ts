/** GET /exports/{entity_type}: what is in the file, held against what the interface answers. */
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { parquetReadObjects } from 'hyparquet';
import { loadUsageAnalytics } from '../../actions/reporting/usage/usage-analytics.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import type { ListedInvoice } from '../support/answers.ts';
import { csvRecords } from '../support/csv-records.ts';
import { startWorld, tiers, usage, type World } from '../support/world.ts';

const MARCH = 'start_time=2026-03-01T00:00:00Z&end_time=2026-04-01T00:00:00Z';

describe('exports on demand', () => {
  let world: World;
  const get = <Path extends string>(path: Path, options: { key?: string } = {}) =>
    world.api.request('GET', `/exports/${path}`, options);
  const bytesOf = async (path: string) => {
    const answer = await fetch(`${world.api.url}/v1/exports/${path}`, { headers: { 'x-api-key': world.api.key } });
    expect(answer.status).to.equal(200);
    return { bytes: new Uint8Array(await answer.arrayBuffer()), headers: answer.headers };
  };
  const recordsOf = async <Path extends string>(path: Path) => {
    const answer = await get(path);
    expect(answer.status, answer.text).to.equal(200);
    return csvRecords(answer.text);
  };
  const sum = (texts: string[]) => texts.reduce((all, text) => all.plus(text), new Decimal(0)).toFixed();

  before(async () => {
    world = await startWorld({ now: '2026-02-01T00:00:00Z' });
    const tokens = await world.meter('tokens');
    await world.meter('calls', { type: 'COUNT' });
    await world.post('/features', { name: '=Tokens', type: 'metered', meter_id: tokens.id, lookup_key: 'tokens' });
    await world.plan('Pro', [
      tiers('tokens', [
        [3, '0.5'],
        [null, '0.25', '1'],
      ]),
      usage('calls', '0.01'),
    ]);
    await world.on('2026-03-01');
    await world.subscribe('acme', 'Pro');
    await world.subscribe('globex', 'Pro');
    const at = '2026-03-10T10:00:00.123456Z';
    await world.send([
      { ...world.event('acme', 'tokens', { n: '1.50', at }), properties: { n: '1.50', note: '=1+1, "quoted"' } },
      world.event('acme', 'tokens', { n: 3, at }),
      world.event('acme', 'calls', { n: 1, at }),
      world.event('globex', 'tokens', { n: 2, at: '2026-03-31T23:59:59.999999Z' }),
      world.event('-stranger', 'tokens', { n: 1, at }),
      world.event('acme', 'tokens', { n: 100, at: '2026-02-28T23:59:59.999999Z' }),
    ]);
    await world.waitForPipeline();
    world.at('2026-04-02');
    await world.waitForPipeline();
  });
  after(() => world.stop());

  describe('200', () => {
    it('events of the time alone, each once, as the interface answers them', async () => {
      const records = await recordsOf(`events?${MARCH}`);
      const { events } = await world.get('/events?start_time=2026-03-01T00:00:00Z&end_time=2026-04-01T00:00:00Z');
      const key = (event: Record<string, unknown>) => String(event.event_id ?? event.id);
      expect(records.map(key).sort()).to.deep.equal(events.map(key).sort());
      const shown = records.find(({ properties }) => properties!.includes('quoted'))!;
      const answered = events.find(({ id }: { id: string }) => id === shown.event_id);
      expect(shown).to.include({
        event_name: answered!.event_name,
        external_customer_id: 'acme',
        timestamp: '2026-03-10T10:00:00.123456Z',
        received_at: answered!.received_at,
      });
      expect(JSON.parse(shown.properties!)).to.deep.equal(answered!.properties);
      const stranger = records.find(({ external_customer_id }) => external_customer_id === "'-stranger");
      expect(stranger).to.not.equal(undefined);
    });

    it('usage analytics: its sums are those of POST /events/analytics', async () => {
      const records = await recordsOf(`usage_analytics?${MARCH}&customer_metadata=region`);
      const analytics = await world.post('/events/analytics', {
        external_customer_ids: ['acme', 'globex'],
        start_time: '2026-03-01T00:00:00Z',
        end_time: '2026-04-01T00:00:00Z',
      });
      expect(sum(records.map(({ total_cost }) => total_cost!))).to.equal(analytics.total_cost);
      expect(analytics.total_cost).to.equal('3.885');
      expect(records).to.have.length(analytics.items.length);
      const acme = records.find((one) => one.customer_external_id === 'acme' && one.event_name === 'tokens')!;
      expect(acme).to.include({
        start_time: '2026-03-01T00:00:00Z',
        end_time: '2026-04-01T00:00:00Z',
        feature_name: "'=Tokens",
        event_count: '2',
        aggregation_field: 'n',
        total_usage: '4.5',
        currency: 'usd',
        source: '',
        'customer.metadata.region': '',
      });
      expect(Object.keys(acme).slice(0, 15)).to.deep.equal([
        'customer_name',
        'customer_id',
        'customer_external_id',
        'start_time',
        'end_time',
        'feature_name',
        'feature_id',
        'feature_group_name',
        'event_name',
        'event_count',
        'aggregation_field',
        'total_usage',
        'total_cost',
        'currency',
        'source',
      ]);
    });

    it('usage analytics of customers who are archived while they are read', async () => {
      const { services, scope } = world.api;
      await world.subscribe('leaver', 'Pro');
      const customers = await CustomerModel.in(scope, services.postgres).whereIn('external_id', ['leaver', 'acme']);
      await CustomerModel.in(scope, services.postgres).where('external_id', 'leaver').patch({ status: 'archived' });
      const asked = {
        ...{ feature_ids: null, meter_ids: null, sources: null, property_filters: null },
        ...{ group_by: { source: false, properties: [] }, window_size: null, billing_anchor_ms: null },
        start_us: Date.UTC(2026, 2, 1) * 1000,
        end_us: Date.UTC(2026, 3, 1) * 1000,
        now: services.clock(),
        external_customer_ids: ['leaver', 'acme'],
      };
      const { rows } = await loadUsageAnalytics(services, scope, { ...asked, customers });
      expect(rows.map(({ external_customer_id }) => external_customer_id)).to.include('acme');
      const byName = await loadUsageAnalytics(services, scope, asked).catch((error) => error);
      expect(byName.code).to.equal('not_found');
    });

    it('with a byte order mark for browsers and where it is asked for, packed or not', async () => {
      const begins = async (more: string, agent: string) => {
        const headers = { 'x-api-key': world.api.key, 'user-agent': agent };
        const answer = await fetch(`${world.api.url}/v1/exports/events?${MARCH}${more}`, { headers });
        expect(answer.status).to.equal(200);
        const bytes = Buffer.from(await answer.arrayBuffer());
        const plain = more.includes('gzip') ? gunzipSync(bytes) : bytes;
        return plain.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf]));
      };
      const browser = 'Mozilla/5.0 (X11; Linux x86_64)';
      expect(await begins('', 'curl/8')).to.equal(false);
      expect(await begins('', browser)).to.equal(true);
      expect(await begins('&bom=false', browser)).to.equal(false);
      expect(await begins('&bom=true', 'curl/8')).to.equal(true);
      expect(await begins('&bom=true&compression=gzip', 'curl/8')).to.equal(true);
      expect(await begins('&format=parquet', browser)).to.equal(false);
      const { status, body } = await get(`events?${MARCH}&format=parquet&bom=true`);
      expect([status, body.details!.field]).to.deep.equal([400, 'bom']);
    });

    it('Parquet has the same records: instants to the microsecond, decimals as texts', async () => {
      for (const kind of ['events', 'usage_analytics']) {
        const { bytes, headers } = await bytesOf(`${kind}?${MARCH}&format=parquet`);
        expect(headers.get('content-type')).to.equal('application/vnd.apache.parquet');
        const rows = await parquetReadObjects({ file: bytes.buffer as ArrayBuffer });
        const shown = rows.map((row) =>
          Object.fromEntries(Object.entries(row).map(([name, value]) => [name, cellOf(value)])),
        );
        const plain = (await recordsOf(`${kind}?${MARCH}`)).map((record) =>
          Object.fromEntries(Object.entries(record).map(([name, text]) => [name, defusedNot(text!)])),
        );
        expect(shown).to.deep.equal(plain);
      }
    });

    it('packed as a file when it is asked for', async () => {
      const { bytes, headers } = await bytesOf(`events?${MARCH}&compression=gzip`);
      expect(headers.get('content-type')).to.equal('application/gzip');
      expect(headers.get('content-disposition')).to.equal('attachment; filename="events.csv.gz"');
      expect(gunzipSync(bytes).toString()).to.equal((await get(`events?${MARCH}`)).text);
    });

    it('a voided event is not there, a replaced one as it counts now', async () => {
      const before = await recordsOf(`events?${MARCH}`);
      const [voided, replaced] = before
        .filter(({ event_name, external_customer_id }) => event_name === 'tokens' && external_customer_id === 'acme')
        .map(({ event_id }) => event_id!);
      const at = '2026-03-20T00:00:00Z';
      const accepted = await world.api.request('POST', `/events/${voided}/void`, { body: { reason: 'a test' } });
      expect(accepted.status, accepted.text).to.equal(202);
      await world.replace(replaced!, world.event('globex', 'tokens', { n: '7', at }));
      await world.waitForPipeline();
      const after = await recordsOf(`events?${MARCH}`);
      const ids = (records: Record<string, string>[]) => records.map(({ event_id }) => event_id).sort();
      expect(ids(after)).to.deep.equal(ids(before).filter((id) => id !== voided));
      expect(after.find(({ event_id }) => event_id === replaced)).to.include({
        external_customer_id: 'globex',
        timestamp: at,
        properties: '{"n":"7"}',
      });
    });

    it('nothing: the head alone', async () => {
      const { text } = await get('events?start_time=2025-03-01T00:00:00Z&end_time=2025-04-01T00:00:00Z');
      expect(text).to.equal(
        'event_id,event_name,external_customer_id,customer_id,timestamp,received_at,source,properties\r\n',
      );
    });
  });

  describe('of money', () => {
    const APRIL = 'start_time=2026-04-01T00:00:00Z&end_time=2026-05-01T00:00:00Z';

    before(async () => {
      await world.on('2026-04-03');
      await world.finalize();
      const wallet = await world.post('/wallets', {
        customer_id: world.id('customer acme'),
        currency: 'usd',
        name: '=Prepaid',
        metadata: { tier: 'gold' },
      });
      for (const credits_to_add of ['100.5', '0.25'])
        await world.post(`/wallets/${wallet.id}/top-up`, {
          credits_to_add,
          transaction_reason: 'FREE_CREDIT_GRANT',
          idempotency_key: credits_to_add,
        });
      await world.post(`/wallets/${wallet.id}/debit`, {
        credits: '7.5',
        transaction_reason: 'MANUAL_BALANCE_DEBIT',
        idempotency_key: 'debit',
      });
      world.at('2026-05-02');
    });

    it('invoices: those that became final, to the last digit', async () => {
      const records = await recordsOf(`invoice?${APRIL}`);
      const { items } = await world.get('/invoices?invoice_status=FINALIZED&limit=100');
      expect(items).to.have.length(2);
      expect(records.map(({ id }) => id).sort()).to.deep.equal(items.map(({ id }: { id: string }) => id).sort());
      for (const record of records) {
        const invoice = items.find(({ id }: { id: string }) => id === record.id);
        for (const field of [
          'invoice_number',
          'total',
          'subtotal',
          'amount_due',
          'currency',
          'finalized_at',
          'period_end',
        ])
          expect(record[field], field).to.equal(invoice![field as keyof ListedInvoice]);
      }
      expect(await recordsOf(`invoice?${MARCH}`)).to.deep.equal([]);
    });

    it('FOCUS: the lines of these invoices, whose costs add up to their totals', async () => {
      const records = await recordsOf(`focus?${APRIL}`);
      const { items } = await world.get('/invoices?invoice_status=FINALIZED&limit=100');
      expect(sum(records.map(({ BilledCost }) => BilledCost!))).to.equal(
        sum(items.map(({ total }: { total: string }) => total)),
      );
      const acme = records.filter(({ BillingAccountId }) => BillingAccountId === 'acme');
      const id = items.find(
        ({ customer_id }: { customer_id: string }) => customer_id === world.id('customer acme'),
      )!.id;
      const { line_items } = await world.get(`/invoices/${id}`);
      expect(acme.map((one) => [one.x_InvoiceLineItemId, one.ConsumedQuantity, one.ListCost])).to.deep.equal(
        line_items!.map((line: { id: string; quantity: string; amount: string }) => [
          line.id,
          line.quantity,
          line.amount,
        ]),
      );
      expect(acme[0]).to.include({
        BillingCurrency: 'USD',
        ChargeCategory: 'Usage',
        ChargeFrequency: 'Usage-Based',
        ChargePeriodStart: '2026-03-01T00:00:00Z',
        ChargePeriodEnd: '2026-04-01T00:00:00Z',
        PricingCategory: 'Standard',
        SubAccountId: world.id('subscription acme'),
      });
      expect(await recordsOf(`focus?${MARCH}`)).to.deep.equal([]);
    });

    it('credits: what was put in less what was taken out is the balance', async () => {
      const topups = await recordsOf(`credit_topups?${APRIL}&wallet_metadata=tier`);
      const used = await recordsOf(`credit_usage?${APRIL}`);
      expect(topups.map(({ credit_amount }) => credit_amount)).to.deep.equal(['100.5', '0.25']);
      expect(used.map(({ credit_amount }) => credit_amount)).to.deep.equal(['7.5']);
      const [first] = topups;
      expect(first).to.include({
        wallet_name: "'=Prepaid",
        'wallet.metadata.tier': 'gold',
        customer_external_id: 'acme',
      });
      const { credit_balance } = await world.get(`/wallets/${first!.wallet_id}`);
      const moved = sum([...topups.map((one) => one.credit_amount!), ...used.map((one) => `-${one.credit_amount}`)]);
      expect(moved).to.equal(credit_balance);
    });

    it('invoices of one instant are in the order of their numbers', async () => {
      const { postgres } = world.api.services;
      const [one] = await recordsOf(`invoice?${APRIL}`);
      const columns = 'tenant_id, environment_id, customer_id, invoice_type, payment_status, billing_reason, currency';
      // Their ids go the other way.
      await postgres.raw(
        `insert into invoices (id, ${columns}, invoice_number, invoice_status, finalized_at, created_at)
         select 'inv_order_' || (9 - i), ${columns}, 'INV-2026-0' || i, 'FINALIZED', timestamptz '2026-04-19Z', created_at
           from invoices, generate_series(1, 5) i where id = ?`,
        [one!.id!],
      );
      const numbers = (await recordsOf(`invoice?${APRIL}`)).map(({ invoice_number }) => invoice_number!);
      await postgres.raw(`delete from invoices where id like 'inv_order_%'`);
      expect(numbers.filter((number) => number.startsWith('INV-2026-0')).slice(-5)).to.deep.equal(
        [1, 2, 3, 4, 5].map((number) => `INV-2026-0${number}`),
      );
    });

    it('page after page each record once', async () => {
      const { postgres } = world.api.services;
      const [one] = await recordsOf(`invoice?${APRIL}`);
      const columns = 'tenant_id, environment_id, customer_id, invoice_type, payment_status, billing_reason, currency';
      await postgres.raw(
        `insert into invoices (id, ${columns}, invoice_number, invoice_status, finalized_at, created_at)
         select 'inv_many_' || i, ${columns}, 'M-' || i, 'FINALIZED', timestamptz '2026-04-20Z' + make_interval(secs => i / 3), created_at
           from invoices, generate_series(1, 2500) i where id = ?`,
        [one!.id!],
      );
      const ids = (await recordsOf(`invoice?${APRIL}`)).map(({ id }) => id);
      expect(ids).to.have.length(2502);
      expect(new Set(ids).size).to.equal(2502);
    });
  });

  it('400: a range that is none, reaches into the future, or is longer than a year', async () => {
    for (const [range, field] of [
      ['start_time=2026-03-02T00:00:00Z&end_time=2026-03-01T00:00:00Z', 'end_time'],
      ['start_time=2026-03-02T00:00:00Z&end_time=2026-04-02T00:00:01Z', 'end_time'],
      ['start_time=2025-03-02T00:00:00Z&end_time=2026-04-02T00:00:00Z', 'start_time'],
      ['end_time=2026-04-02T00:00:00Z', 'start_time'],
      [`${MARCH}&wallet_metadata=tier`, 'wallet_metadata'],
      [`${MARCH}&customer_metadata=tier&customer_metadata=tier`, 'customer_metadata'],
    ]) {
      const { status, body } = await get(`events?${range}`);
      expect(status, range).to.equal(400);
      expect(body.details!.field).to.equal(field);
    }
    expect((await get(`nothing?${MARCH}`)).status).to.equal(400);
  });

  it('403: of who may not read what is in it', async () => {
    const key = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    expect((await get(`events?${MARCH}`, { key })).status).to.equal(403);
  });

  it('another tenant sees nothing of it', async () => {
    const { key } = await world.api.otherTenant();
    expect(csvRecords((await get(`events?${MARCH}`, { key })).text)).to.deep.equal([]);
  });
});

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return value.toISOString().replace(/\.000Z$/, 'Z');
  return String(value);
}

/** As the text was before it was made harmless; instants to the millisecond, as JavaScript reads them. */
function defusedNot(text: string): string {
  if (/^\d{4}-.*Z$/.test(text)) return new Date(text).toISOString().replace(/\.000Z$/, 'Z');
  return text.replace(/^'(?=[=+\-@])/, '');
}
