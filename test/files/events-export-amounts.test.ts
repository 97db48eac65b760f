/** GET /events/usage/export with amounts: a file that adds up to the invoices (docs/rules/usage.md, "Amounts in the export"). */

import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { exportUsage } from '../../actions/reporting/usage/export-usage.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { Invoice } from '../support/answers.ts';
import { csvRecords } from '../support/csv-records.ts';
import { startWorld, tiers, usage, type World } from '../support/world.ts';

const JANUARY = 'start_time=2026-01-01&end_time=2026-02-01';
const FEBRUARY = 'start_time=2026-02-01&end_time=2026-03-01';
const SPLITS = ['', '&split=day', '&split=month'];

describe('events: the usage export with amounts', () => {
  let world: World;
  const at = (day: string) => `2026-${day}T10:00:00Z`;
  const rowsOf = async (query: string) => {
    const answer = await world.api.request('GET', `/events/usage/export?amounts=true&${query}`);
    expect(answer.status, answer.text).to.equal(200);
    return csvRecords(answer.text);
  };
  const short = (row: Record<string, string>) =>
    [row.external_customer_id, row.line, row.usage, row.event_count, row.amount, row.start_time!.slice(5, 10)].join(
      ' ',
    );

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.meter('peak', { type: 'MAX', field: 'n' });
    await world.meter('seats', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    await world.meter('unsold');
    await world.plan('Pro', [
      tiers('calls', [
        [10, '1'],
        [null, '0.5', '3'],
      ]),
      usage('peak', '0.333'),
      usage('seats', '2'),
    ]);
    await world.on('2026-01-01', () => world.subscribe('acme', 'Pro'));
    await world.on('2026-01-10', () => world.subscribe('later', 'Pro'));
    await world.send([
      world.event('acme', 'calls', { n: 8, at: at('01-03') }),
      world.event('acme', 'calls', { n: 6, at: at('01-04') }),
      world.event('acme', 'peak', { n: 4, at: at('01-03') }),
      world.event('acme', 'peak', { n: 3, at: at('01-05') }),
      world.event('acme', 'peak', { n: 9, at: at('01-20') }),
      world.event('acme', 'seats', { n: 3, at: at('01-20') }),
      world.event('acme', 'unsold', { n: 5, at: at('01-20') }),
      world.event('later', 'calls', { n: 7, at: at('01-05') }),
      world.event('later', 'calls', { n: 2, at: at('01-12') }),
      world.event('later', 'calls', { n: 2, at: at('02-03') }),
      world.event('stranger', 'calls', { n: 1, at: at('01-05') }),
    ]);
    await world.on('2026-01-25');
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const amounts = <Line extends { quantity: string; amount: string }>(
    lines: readonly Line[],
    name: (line: Line) => string,
    number: (line: Line) => string,
  ) => {
    const keys = [...new Set(lines.map((line) => `${number(line)} ${name(line)}`))].sort();
    return Object.fromEntries(
      keys.map((key) => {
        const same = lines.filter((line) => `${number(line)} ${name(line)}` === key);
        return [
          key,
          (['quantity', 'amount'] as const).map((column) =>
            sumDecimals(same.map((line) => new Decimal(line[column]))).toFixed(),
          ),
        ];
      }),
    );
  };
  const ofFile = (rows: Record<string, string>[], customer: string) =>
    amounts(
      rows
        .filter((row) => row.external_customer_id === customer && row.amount !== '')
        .map((row) => ({ ...row, quantity: row.usage!, amount: row.amount! })),
      (row: Record<string, string>) => row.line!,
      (row: Record<string, string>) => row.invoice_number!,
    );
  const ofInvoices = (invoices: Invoice[]) =>
    amounts(
      invoices.flatMap(({ line_items, invoice_number }) =>
        line_items
          .filter((line) => line.price_type === 'USAGE' && !new Decimal(line.quantity).isZero())
          .map((line) => ({ ...line, invoice_number: invoice_number ?? '' })),
      ),
      (line) => line.display_name!,
      (line) => line.invoice_number,
    );

  describe('of a running period', () => {
    for (const split of SPLITS)
      it(`adds up to the preview${split}`, async () => {
        expect(ofFile(await rowsOf(JANUARY + split), 'acme')).to.deep.equal(ofInvoices([await world.preview('acme')]));
      });

    it('says plan, price, currency, and that there is no invoice yet', async () => {
      const calls = (await rowsOf(JANUARY)).find(
        ({ external_customer_id, line }) => external_customer_id === 'acme' && line === 'calls',
      );
      expect(calls).to.deep.include({
        meter_name: 'calls',
        usage: '14',
        event_count: '2',
        subscription_id: world.id('subscription acme'),
        plan: 'Pro',
        price: 'SLAB: up to 10 1, above 0.5 and 3 once',
        amount: '15',
        currency: 'usd',
        invoice_id: '',
        invoice_number: '',
        invoice_status: '',
      });
    });

    it('of one meter has its charges alone', async () => {
      const own = (await rowsOf(JANUARY)).filter(({ meter_name }) => meter_name === 'calls');
      expect(await rowsOf(`${JANUARY}&meter_ids=${world.id('meter calls')}`)).to.deep.equal(own).and.not.to.be.empty;
    });

    // 14 calls: the tenth is the last at 1. MAX 4 costs 1.33 and 9 costs 3.00: its days are what they added.
    it('a day costs what it added to the charge', async () => {
      const rows = await rowsOf(`${JANUARY}&split=day`);
      expect(rows.filter((row) => row.external_customer_id === 'acme').map(short)).to.deep.equal([
        'acme calls 8 1 8 01-03',
        'acme calls 6 1 7 01-04',
        'acme peak 4 1 1.33 01-03',
        'acme peak 0 1 0 01-05',
        'acme peak 5 1 1.67 01-20',
        'acme seats 3 1 6 01-20',
        'acme  5 1  01-20',
      ]);
    });

    it('a period that has not begun charges nothing, also for what never resets', async () => {
      const year = await rowsOf('start_time=2026-01-01&end_time=2027-01-01');
      expect(ofFile(year, 'acme')).to.deep.equal(ofFile(await rowsOf(JANUARY), 'acme'));
    });

    it('what nobody charges for has no amount, and no 0', async () => {
      const rows = (await rowsOf(JANUARY)).filter((row) => row.amount === '');
      expect(rows.map((row) => `${short(row)} ${row.meter_name} ${row.end_time!.slice(5, 10)}`)).to.deep.equal([
        'acme  5 1  01-01 unsold 02-01',
        'later  7 1  01-01 calls 01-10',
        'stranger  1 1  01-01 calls 02-01',
      ]);
    });

    it('a period that the range cuts: two files side by side add up to it', async () => {
      const first = await rowsOf('start_time=2026-01-01&end_time=2026-01-04');
      const second = await rowsOf('start_time=2026-01-04&end_time=2026-02-01');
      expect(first.filter((row) => row.external_customer_id === 'acme').map(short)).to.deep.equal([
        'acme calls 8 1 8 01-01',
        'acme peak 4 1 1.33 01-01',
      ]);
      expect(ofFile([...first, ...second], 'acme')).to.deep.equal(ofFile(await rowsOf(JANUARY), 'acme'));
    });

    it('is the same customer by customer', async () => {
      const asked = {
        start_us: Date.parse('2026-01-01') * 1000,
        end_us: Date.parse('2026-03-01') * 1000,
        meter_ids: null,
        timezone: null,
        split: 'MONTH',
        amounts: true,
        now: world.now,
      } as const;
      const all = async (customers_per_batch: number) => {
        const records: string[] = [];
        for await (const one of exportUsage(world.api.services, world.api.scope, { ...asked, customers_per_batch }))
          records.push(`${one.external_customer_id} ${one.meter.name} ${one.start_us} ${one.charge?.amount}`);
        return records;
      };
      expect(await all(1))
        .to.deep.equal(await all(2000))
        .and.not.to.have.length(0);
    });
  });

  describe('of drafts', () => {
    before(() => world.on('2026-02-20'));

    it('each record names the draft, which has no number yet, by its id', async () => {
      const drafts = await world.invoices('acme');
      expect(drafts.map(({ invoice_status }) => invoice_status)).to.deep.equal(['DRAFT']);
      const rows = (await rowsOf(JANUARY)).filter(
        ({ external_customer_id, amount }) => external_customer_id === 'acme' && amount !== '',
      );
      expect(rows).to.have.length(3);
      for (const row of rows)
        expect(row).to.include({ invoice_id: drafts[0]!.id, invoice_number: '', invoice_status: 'DRAFT' });
      expect((await world.api.request('GET', `/invoices/${rows[0]!.invoice_id}`)).status).to.equal(200);
    });
  });

  describe('of invoices', () => {
    before(() => world.finalize());

    for (const split of SPLITS)
      it(`adds up to each of them, by its number${split}`, async () => {
        const invoices = (await world.invoices('acme')).filter(({ invoice_status }) => invoice_status === 'FINALIZED');
        expect(invoices).to.have.length(1);
        const rows = await rowsOf(JANUARY + split);
        expect(
          rows.filter((row) => row.invoice_number !== '').every((row) => row.invoice_status === 'FINALIZED'),
        ).to.equal(true);
        expect(ofFile(rows, 'acme')).to.deep.equal(ofInvoices(invoices));
      });

    it('what never resets stands in a month without an event', async () => {
      const rows = (await rowsOf(FEBRUARY)).filter((row) => row.external_customer_id === 'acme');
      expect(rows.map(short)).to.deep.equal(['acme seats 3 1 6 02-01']);
    });

    it('months of the calendar cut a period from the 10th to the 10th', async () => {
      const rows = await rowsOf('start_time=2026-01-01&end_time=2026-03-01&split=month');
      const later = rows.filter((row) => row.external_customer_id === 'later' && row.amount !== '');
      expect(later.map(short)).to.deep.equal(['later calls 2 1 2 01-10', 'later calls 2 1 2 02-01']);
    });

    it('late events: what is on the invoice is not cut, and the difference has the number of the next', async () => {
      await world.send([world.event('acme', 'calls', { n: 10, at: at('01-06') })]);
      await world.waitForPipeline();
      await world.on('2026-03-02');
      await world.finalize();
      const numbers = (await world.invoices('acme')).map(({ invoice_number }) => invoice_number);
      const rows = (await rowsOf(`${JANUARY}&split=day`)).filter((row) => row.external_customer_id === 'acme');
      const calls = rows.filter((row) => row.meter_name === 'calls');
      expect(
        calls.map((row) => `${short(row)} ${row.end_time!.slice(5, 10)} ${row.invoice_number}`).sort(),
      ).to.deep.equal(
        [`acme calls (late events) 10 1 5 01-01 02-01`, `acme calls 14 2 15 01-01 02-01`].map(
          (row, index) => `${row} ${[...numbers].sort().reverse()[index]}`,
        ),
      );
      const both = await rowsOf('start_time=2026-01-01&end_time=2026-03-01');
      expect(
        ofFile(
          both.filter((row) => row.invoice_status === 'FINALIZED'),
          'acme',
        ),
      ).to.deep.equal(ofInvoices(await world.invoices('acme')));
    });

    it('what was charged stays charged when its customer is archived', async () => {
      const charged = async () =>
        (await rowsOf('start_time=2026-01-01&end_time=2026-02-10'))
          .filter((row) => row.external_customer_id === 'later' && row.invoice_number !== '')
          .map(short);
      const before = await charged();
      expect(before).to.deep.equal(['later calls 4 2 4 01-10']);
      await world.cancel('later');
      const { body: customer } = await world.api.request('GET', '/customers/external/later');
      const archived = await world.api.request('DELETE', `/customers/${customer.id}`);
      expect(archived.status, archived.text).to.equal(204);
      expect(await charged()).to.deep.equal(before);
    });
  });

  describe('how it is asked', () => {
    it('a range may begin and end within a millisecond, and days are cut from it', async () => {
      const range = 'start_time=2026-01-03T00:00:00.0005Z&end_time=2026-01-05T00:00:00.0005Z';
      const [whole] = await rowsOf(`${range}&timezone=America/St_Johns`);
      expect(whole!.start_time).to.equal('2026-01-03T00:00:00.0005Z');
      const days = await rowsOf(`${range}&split=day&timezone=America/St_Johns`);
      expect(days[0]!.start_time).to.equal('2026-01-03T03:30:00Z');
    });

    it('dates are midnights of the time zone, and so are the days', async () => {
      const rows = await rowsOf('start_time=2026-01-03&end_time=2026-01-05&timezone=Asia/Tokyo&split=day&meter_ids=');
      expect(rows[0]).to.deep.include({ start_time: '2026-01-02T15:00:00Z', end_time: '2026-01-03T15:00:00Z' });
    });

    it('the file begins with a byte order mark for browsers, and where it is asked for', async () => {
      const browser = { 'user-agent': 'Mozilla/5.0 (Windows NT 10.0; Win64; x64)' };
      const begins = async (query: string, headers: Record<string, string>) =>
        (await bytesOf(world, `/events/usage/export?${JANUARY}${query}`, headers)).subarray(0, 3).toString('hex') ===
        'efbbbf';
      expect(await begins('', browser)).to.equal(true);
      expect(await begins('', {})).to.equal(false);
      expect(await begins('&bom=false', browser)).to.equal(false);
      expect(await begins('&bom=true', {})).to.equal(true);
    });

    for (const [query, field] of [
      ['start_time=2026-02-30&end_time=2026-03-01', 'start_time'],
      ['start_time=2026-03-01&end_time=2026-03-01', 'end_time'],
      [`${JANUARY}&split=week`, 'split'],
      ['start_time=2024-01-01&end_time=2026-01-01&split=day', 'split'],
      [`${JANUARY}&amounts=perhaps`, 'amounts'],
      [`${JANUARY}&bom=1`, 'bom'],
    ] as const)
      it(`400 names ${field}: ${query}`, async () => {
        const { status, body } = await world.api.request('GET', `/events/usage/export?${query}`);
        expect([status, body.code]).to.deep.equal([400, 'validation_error']);
        expect(body.message).to.contain(field);
      });
  });

  describe('of a plan that was archived', () => {
    it('what its prices charged stays as it was', async () => {
      await world.cancel('acme');
      const charged = async () => (await rowsOf('start_time=2026-01-01&end_time=2026-03-10')).map((row) => row.amount);
      const before = await charged();
      expect(before).to.include('15');
      const plan = await world.api.request('DELETE', `/plans/${world.id('plan Pro')}`);
      expect(plan.status, plan.text).to.equal(200);
      const { items } = await world.get(`/prices?plan_ids=${world.id('plan Pro')}&status=archived`);
      expect(items).to.have.length(3);
      expect(await charged()).to.deep.equal(before);
    });
  });
});

/** fetch would take the mark away. */
async function bytesOf(world: World, path: string, headers: Record<string, string>): Promise<Buffer> {
  const asked = httpRequest(`${world.api.url}/v1${path}`, {
    headers: { 'x-api-key': world.api.key, ...headers },
  }).end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
