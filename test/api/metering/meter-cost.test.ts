/** What expressions and meters may cost when they are made, changed or asked for. */
import { expect } from 'chai';
import { EVENT_NAME_COST_MAX } from '../../../core/metering/meter-cost.ts';
import { startTestApi, type TestAnswer, type TestApi } from '../../support/api.ts';

const FIFTY_POWERS = Array.from({ length: 50 }, () => 'pow(a,b)').join('+');

describe('the cost of meters', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  const create = (event_name: string, aggregation: object = { type: 'COUNT' }, filters: object[] = []) =>
    api.request('POST', '/meters', { body: { name: 'm', event_name, aggregation, filters } });
  const fieldOf = ({ status, body }: TestAnswer) => [status, body.code, body.details?.field];
  const countMeters = async () => Number((await api.services.postgres('meters').count())[0]!.count);

  it('400 for an expression beyond the cap, with cost and cap, and no meter is made', async () => {
    const before = await countMeters();
    const answer = await create('powers', { type: 'SUM', expression: FIFTY_POWERS });
    expect(fieldOf(answer)).to.deep.equal([400, 'validation_error', 'aggregation.expression']);
    expect(answer.body.message).to.match(/costs \d+ units of work for each event, at most 300 are allowed/);
    expect(answer.body.details).to.include.keys('cost', 'cost_max');
    expect(await countMeters()).to.equal(before);
  });

  it('400 for a feature with such a meter, named where the request has it', async () => {
    const meter = { name: 'm', event_name: 'powers', aggregation: { type: 'SUM', expression: FIFTY_POWERS } };
    const answer = await api.request('POST', '/features', { body: { name: 'Powers', type: 'metered', meter } });
    expect(fieldOf(answer)).to.deep.equal([400, 'validation_error', 'meter.aggregation.expression']);
  });

  it('400 for a question with such an expression', async () => {
    const body = { event_name: 'powers', aggregation_type: 'SUM', expression: FIFTY_POWERS };
    const answer = await api.request('POST', '/events/usage', { body });
    expect(fieldOf(answer)).to.deep.equal([400, 'validation_error', 'expression']);
  });

  it('400 for filters that cost too much, at creation and at an update', async () => {
    const filters = Array.from({ length: EVENT_NAME_COST_MAX }, (_, index) => ({ key: `k${index}`, values: ['v'] }));
    expect(fieldOf(await create('filtered', { type: 'COUNT' }, filters))).to.deep.equal([
      400,
      'validation_error',
      'event_name',
    ]);
    const { body } = await create('filtered', { type: 'COUNT' }, [{ key: 'a', values: ['v'] }]);
    const changed = await api.request('PUT', `/meters/${body.id}`, { body: { filters } });
    expect(fieldOf(changed)).to.deep.equal([400, 'validation_error', 'filters']);
    const values = Array.from({ length: 20 }, (_, index) => `${index}`.padEnd(EVENT_NAME_COST_MAX * 50, 'x'));
    const long = await api.request('PUT', `/meters/${body.id}`, { body: { filters: [{ key: 'a', values }] } });
    expect(fieldOf(long)).to.deep.equal([400, 'validation_error', 'filters']);
  });

  it('a meter of before the caps goes on, and may become cheaper', async () => {
    const { body } = await create('old', { type: 'SUM', expression: 'a * 2' }, [
      { key: 'a', values: ['v'] },
      { key: 'b', values: ['v'] },
    ]);
    const aggregation = { ...body.aggregation, expression: FIFTY_POWERS };
    await api.services
      .postgres('meters')
      .where('id', body.id)
      .update({ aggregation: JSON.stringify(aggregation) });
    const change = (filters: object[]) => api.request('PUT', `/meters/${body.id}`, { body: { filters } });
    expect((await change([{ key: 'a', values: ['v'] }])).status).to.equal(200);
    expect(fieldOf(await change(['a', 'b', 'c', 'd'].map((key) => ({ key, values: ['v'] }))))).to.deep.equal([
      400,
      'validation_error',
      'filters',
    ]);
  });
});
