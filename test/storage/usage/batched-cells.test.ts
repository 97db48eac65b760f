/**
 * Questions that are asked at one time: each is answered as if it were asked alone, whatever else is asked, and they go to the
 * store as one statement, whatever stretches of time they are about.
 */
import { expect } from 'chai';
import type { AggregationType } from '../../../core/metering/aggregations/index.ts';
import { connectClickHouse } from '../../../storage/clickhouse/clickhouse.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { type StatementWay, statementsTo } from '../../faults/statements.ts';
import { type Metering, SCOPE, startMetering } from '../../support/metering.ts';

const METERS: Record<string, AggregationType> = {
  m_count: 'COUNT',
  m_sum: 'SUM',
  m_max: 'MAX',
  m_unique: 'COUNT_UNIQUE',
  m_latest: 'LATEST',
};
const CUSTOMERS = ["o'brien", 'acme', 'globex', 'nobody'];
const RANGES = [
  ['2026-03-10T00:00:00Z', '2026-03-11T00:00:00Z'],
  ['2026-03-10T00:00:00Z', '2026-03-10T11:45:00Z'],
  // An event lies behind this end, in an hour that it shares.
  ['2026-03-10T00:00:00Z', '2026-03-10T11:15:00Z'],
  ['2026-03-10T11:00:00Z', '2026-03-10T12:00:00Z'],
  ['2026-03-10T10:05:00Z', '2026-03-10T11:30:00.000001Z'],
  ['2026-01-31T23:59:59.999999Z', '2026-04-02T00:00:00Z'],
  ['2026-03-11T00:00:00Z', '2026-03-12T00:00:00Z'],
] as const;

describe('usage that is asked for at one time', () => {
  let metering: Metering;
  let way: StatementWay;
  let statements: string[] = [];

  before(async () => {
    metering = await startMetering({
      clickhouse: async (url) => {
        way = await statementsTo(url);
        return connectClickHouse(way.url);
      },
    });
    for (const [id, type] of Object.entries(METERS)) {
      const aggregation = type === 'COUNT' ? { type } : { type, field: 'n' };
      await metering.announce(id, { event_name: 'call', filters: [], aggregation });
    }
    const customers = CUSTOMERS.slice(0, 3);
    await metering.send(
      customers.flatMap((external_customer_id, index) =>
        ['10:05:00', '11:10:00', '11:30:00'].map((time, at) => ({
          event_id: `${external_customer_id}-${time}`,
          event_name: 'call',
          external_customer_id,
          timestamp: `2026-03-10T${time}Z`,
          properties: { n: 10 * (index + 1) + at },
        })),
      ),
    );
    await metering.waitForPipeline();
  });
  after(async () => {
    await metering.stop();
    await way.close();
  });

  const each = (ranges: readonly (typeof RANGES)[number][]) =>
    Object.keys(METERS).flatMap((meter) =>
      CUSTOMERS.flatMap((customer) => ranges.map((range) => ({ meter, customer, range }))),
    );
  const watched = async <Answer>(work: () => Promise<Answer>) => {
    statements = [];
    way.meet(({ text }) => {
      if (/from usage_buckets/.test(text)) statements.push(text);
      return undefined;
    });
    const answer = await work();
    way.meet(undefined);
    return answer;
  };

  it('is the same as asked one after the other', async () => {
    const questions = each(RANGES);
    const alone: string[] = [];
    for (const { meter, customer, range } of questions) alone.push(await metering.usage(meter, customer, range));
    const together = await Promise.all(
      questions.map(({ meter, customer, range }) => metering.usage(meter, customer, range)),
    );
    expect(together).to.deep.equal(alone);
    expect(new Set(alone).size, 'they differ').to.be.greaterThan(10);
    expect(await metering.usage('m_sum', "o'brien", RANGES[2])).to.equal('21');
  });

  it('is one statement for those that read the same columns, of whatever time', async () => {
    const questions = each([RANGES[0], RANGES[1], RANGES[3], RANGES[5]]).filter(({ meter }) =>
      ['m_count', 'm_sum', 'm_max'].includes(meter),
    );
    const answers = await watched(() =>
      Promise.all(questions.map(({ meter, customer, range }) => metering.usage(meter, customer, range))),
    );
    const ofDay = ['3', '3', '3', '0', '33', '63', '93', '0', '12', '22', '32', '0'];
    const ofHour = ['2', '2', '2', '0', '23', '43', '63', '0', '12', '22', '32', '0'];
    expect(answers).to.have.members([...ofDay, ...ofDay, ...ofDay, ...ofHour]);
    expect(statements).to.have.length(1);
  });

  it('asks for sets and latest values only where they are wanted, and for each set by itself, but for those that are empty', async () => {
    await watched(() =>
      Promise.all(each([RANGES[0]]).map(({ meter, customer, range }) => metering.usage(meter, customer, range))),
    );
    // One has none, which one statement tells of all.
    expect(statements.filter((text) => text.includes('unique_values'))).to.have.length(CUSTOMERS.length - 1);
    expect(statements.filter((text) => text.includes('latest'))).to.have.length(1);
    expect(statements).to.have.length(CUSTOMERS.length + 2);
    await watched(() => metering.usage('m_unique', 'nobody', RANGES[0]));
    expect(statements, 'who asks alone asks at once').to.have.length(1);
  });

  it('counts the groups and very many windows of who has bounds while they come: such questions are their own', async () => {
    const aggregation = { type: 'MAX', field: 'n', group_by: 'host' } as const;
    await metering.announce('m_grouped', { event_name: 'call', filters: [], aggregation });
    await metering.waitForPipeline();
    const range = { start_us: Date.parse(RANGES[0][0]) * 1000, end_us: Date.parse(RANGES[0][1]) * 1000 };
    const bounds = () => ({ asker: 'acme', signal: new AbortController().signal, spent: { work: 0 } });
    const ask = (id: string) =>
      readUsageReport(metering.stores, SCOPE, {
        meter: { id },
        external_customer_ids: ['acme'],
        ...range,
        bounds: bounds(),
      });
    await watched(() => Promise.all([ask('m_grouped'), ask('m_grouped'), ask('m_max'), ask('m_sum')]));
    const [grouped, plain] = [true, false].map((is) => statements.filter((text) => text.includes('group_key') === is));
    expect(grouped).to.have.length(2);
    // Whoever comes while a statement is out waits for the next one, so these are one or two.
    expect(plain!.length).to.be.within(1, 2);

    const hourly = { type: 'MAX', field: 'n', bucket_size: 'HOUR' } as const;
    for (const id of ['m_hourly', 'm_also_hourly'])
      await metering.announce(id, { event_name: 'call', filters: [], aggregation: hourly });
    await metering.waitForPipeline();
    const both = (days: number) => () =>
      Promise.all(
        ['m_hourly', 'm_also_hourly'].map((id) =>
          readUsageReport(metering.stores, SCOPE, {
            meter: { id },
            external_customer_ids: ['acme'],
            start_us: range.start_us,
            end_us: range.start_us + days * 86_400_000_000,
            bounds: bounds(),
          }),
        ),
      );
    const month = await watched(both(31));
    expect(statements, 'a month of hours').to.have.length(1);
    const season = await watched(both(60));
    expect(statements, 'two months').to.have.length(2);
    expect([...month, ...season].map(({ usage }) => String(usage[0]!.total.value))).to.deep.equal(
      Array(4).fill('42'), // 20 in one hour and 22 in the next.
    );
  });

  it('goes in parts where it would be more than a server takes of one parameter, 128 KiB', async () => {
    const months = Array.from(
      { length: 48 },
      (_, month) => [Date.UTC(2023, month), Date.UTC(2023, month + 1)] as const,
    );
    const answers = await watched(() =>
      Promise.all(
        months.map(([start, end]) =>
          readUsageReport(metering.stores, SCOPE, {
            meter: { id: 'm_sum' },
            external_customer_ids: ['acme'],
            start_us: start * 1000,
            end_us: end * 1000,
            window_size: 'HOUR',
            bounds: { asker: 'acme', signal: new AbortController().signal, spent: { work: 0 } },
          }),
        ),
      ),
    );
    expect(
      answers.map(({ usage }) => String(usage[0]?.total.value ?? '0')).filter((value) => value !== '0'),
    ).to.deep.equal(['63']);
    const instants = statements.map((text) => text.match(/\b\d{10}\b/g)?.length ?? 0);
    expect(instants.length).to.be.within(2, 24);
    expect(Math.max(...instants) * '1767225600,'.length).to.be.within(50_000, 131_072);
  });

  it('is asked once more when its connection breaks before anything is answered', async () => {
    let asked = 0;
    way.meet(({ text }) => (/from usage_buckets/.test(text) && asked++ === 0 ? 'lost' : undefined));
    expect(await metering.usage('m_sum', 'acme', RANGES[0])).to.equal('63');
    way.meet(undefined);
    expect(asked).to.equal(2);
  });

  it('fails for each of them when the statement fails, and for nobody afterwards', async () => {
    const ask = () => Promise.allSettled(CUSTOMERS.map((customer) => metering.usage('m_sum', customer, RANGES[0])));
    way.meet(({ text }) => (/from usage_buckets/.test(text) ? 'lost' : undefined));
    const refused = await ask();
    way.meet(undefined);
    expect(refused.map((one) => one.status === 'rejected' && one.reason.code)).to.deep.equal(
      CUSTOMERS.map(() => 'service_unavailable'),
    );
    expect((await ask()).map(({ status }) => status)).to.deep.equal(CUSTOMERS.map(() => 'fulfilled'));
  });
});
