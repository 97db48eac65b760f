import { expect } from 'chai';
import { replayDeadLetters } from '../../../actions/metering/events/replay-dead-letters.ts';
import { auditUsage } from '../../../actions/operations/audit/usage.ts';
import { countDeadLetters, findDeadLetters } from '../../../storage/events/dead-letters.ts';
import { type Metering, SCOPE, startMetering } from '../../support/metering.ts';

const MARCH = ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'] as const;

describe('what can never be written', () => {
  let metering: Metering;
  beforeEach(async () => {
    metering = await startMetering({ partitions: 1 });
    await metering.announce('m', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    await metering.waitForPipeline();
  });
  afterEach(() => metering.stop());

  const event = (id: string, fields = {}) => ({
    event_id: id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-10T10:20:00Z',
    properties: { n: '1' },
    ...fields,
  });
  const many = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => event(`${prefix}${i}`));
  const refuse = (table: string, condition: string) =>
    metering.stores.clickhouse.command({ query: `alter table ${table} add constraint refused check ${condition}` });
  const accept = (table: string) =>
    metering.stores.clickhouse.command({ query: `alter table ${table} drop constraint refused` });
  const letters = () => findDeadLetters(metering.stores, SCOPE, { ids: null, limit: 100, offset: 0 });
  const replay = (ids: string[] | null) =>
    replayDeadLetters(metering.stores, SCOPE, { ids, user_id: 'u', now: new Date() });

  it('is set aside with its bytes and the reason, the rest is counted, and it counts once it can be written', async () => {
    await refuse('events', `source != 'bad'`);
    await metering.send([...many('a', 20), event('poison', { source: 'bad' }), ...many('b', 20)]);
    await metering.waitForPipeline();
    expect(await metering.usage('m', 'acme', MARCH)).to.equal('40');
    const [letter] = await letters();
    expect(letter).to.deep.include({ event_id: 'poison', replayed_at: null });
    expect(letter!.reason).to.include('cannot be written');
    expect(JSON.parse(letter!.body)).to.deep.equal(event('poison', { source: 'bad' }));

    await accept('events');
    expect((await replay([letter!.id, '9-9-9'])).map(({ verdict, event_id }) => [verdict, event_id])).to.deep.equal([
      ['replayed', 'poison'],
      ['unknown', null],
    ]);
    await metering.waitForPipeline();
    expect(await metering.usage('m', 'acme', MARCH)).to.equal('41');
    expect((await letters())[0]!.replayed_at).to.be.a('string');
    expect((await replay(null)).length).to.equal(0);
    expect((await replay([letter!.id]))[0]!.verdict).to.equal('replayed_before');
    expect(await countDeadLetters(metering.stores, SCOPE)).to.equal(1);
  });

  it('is voided where its raw row was written before its bucket row was rejected', async () => {
    await refuse('usage_buckets', `external_customer_id != 'cursed'`);
    await metering.send([...many('a', 10), event('poison', { external_customer_id: 'cursed' })]);
    await metering.waitForPipeline();
    expect(await metering.usage('m', 'acme', MARCH)).to.equal('10');
    expect((await letters()).map(({ event_id }) => event_id)).to.deep.equal(['poison']);
    expect((await auditUsage(metering.stores, {}, () => {})).differences).to.equal(0);
    await accept('usage_buckets');
    expect((await replay(null)).map(({ verdict }) => verdict)).to.deep.equal(['replayed']);
    await metering.waitForPipeline();
    expect(await metering.usage('m', 'cursed', MARCH)).to.equal('1');
    expect((await auditUsage(metering.stores, {}, () => {})).differences).to.equal(0);
  });

  it('is set aside by two partitions at once, each with tables of its own to try', async () => {
    await metering.stop();
    metering = await startMetering({ partitions: 2 });
    await metering.announce('m', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    await metering.waitForPipeline();
    await metering.pause();
    await refuse('events', `source != 'bad'`);
    const bad = (_none: unknown, i: number) => event(`bad${i}`, { source: 'bad' });
    await metering.send([...many('a', 60), ...Array.from({ length: 6 }, bad), ...many('b', 60)]);
    const { rows } = await metering.stores.postgres.raw(
      `select distinct partition from log_records where kind = 'events'`,
    );
    expect(rows.length).to.equal(2);
    await metering.resume();
    await metering.waitForPipeline();
    expect(await metering.usage('m', 'acme', MARCH)).to.equal('120');
    expect((await letters()).map(({ event_id }) => event_id).sort()).to.deep.equal(
      Array.from({ length: 6 }, (_none, i) => `bad${i}`),
    );
    const tables = await metering.rows(
      `select name from system.tables where database = currentDatabase() and name like '%trial%'`,
    );
    expect(tables).to.deep.equal([]);
  });

  it('takes events of hundreds of months in one batch', async () => {
    const months = Array.from({ length: 300 }, (_, i) =>
      event(`m${i}`, { timestamp: new Date(Date.UTC(2000, i, 5)).toISOString() }),
    );
    await metering.send(months);
    await metering.waitForPipeline();
    expect(await metering.usage('m', 'acme', ['2000-01-01T00:00:00Z', '2025-01-01T00:00:00Z'])).to.equal('300');
  });

  it('a replay is validated again', async () => {
    await metering.send([{ event_id: 'nameless', external_customer_id: 'acme' }]);
    await metering.waitForPipeline();
    const [letter] = await letters();
    const [verdict] = await replay(null);
    expect(verdict).to.deep.include({ id: letter!.id, verdict: 'refused', message: 'event_name: is required' });
    expect((await letters())[0]!.replayed_at).to.equal(null);
  });
});
