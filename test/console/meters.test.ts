import { expect } from 'chai';
import {
  addMicrosecond,
  buildCountTrial,
  buildMeterRequest,
  buildTrial,
  createMeterDraft,
  fillDays,
  findErrorPlace,
  findRange,
  isCountable,
  type MeterDraft,
  shortenError,
} from '../../console/pages/meters/meter-draft.ts';

const RANGE = { start_time: '2026-11-29T00:00:00.000Z', end_time: '2026-11-30T12:00:00.000Z' };
const SUM: MeterDraft = { ...createMeterDraft('completion'), name: 'Tokens', type: 'SUM', field: 'tokens' };

describe('the draft of a meter', () => {
  it('tries the definition that it saves', () => {
    const draft: MeterDraft = {
      ...SUM,
      type: 'MAX',
      bucket_size: 'HOUR',
      group_by: 'region',
      filters: [
        { key: 'model', values: ['a', 'b'] },
        { key: '', values: ['c'] },
      ],
    };
    expect(buildMeterRequest(draft)).to.deep.equal({
      name: 'Tokens',
      event_name: 'completion',
      aggregation: {
        type: 'MAX',
        field: 'tokens',
        expression: null,
        multiplier: null,
        bucket_size: 'HOUR',
        group_by: 'region',
      },
      filters: [{ key: 'model', values: ['a', 'b'] }],
      reset_usage: 'BILLING_PERIOD',
    });
    expect(buildTrial(draft, RANGE)).to.deep.equal({
      event_name: 'completion',
      aggregation_type: 'MAX',
      property_name: 'tokens',
      expression: null,
      multiplier: null,
      bucket_size: 'HOUR',
      group_by_property: 'region',
      filters: { model: ['a', 'b'] },
      window_size: 'DAY',
      ...RANGE,
    });
  });

  it('drops the fields that its aggregation does not take', () => {
    const draft: MeterDraft = { ...SUM, bucket_size: 'HOUR', group_by: 'region', multiplier: '2', expression: 'a + b' };
    expect(buildMeterRequest(draft).aggregation).to.include({ multiplier: null, group_by: null, expression: null });
    expect(buildCountTrial(draft, RANGE)).to.include({
      aggregation_type: 'COUNT',
      property_name: null,
      bucket_size: null,
    });
    expect(buildMeterRequest({ ...draft, source: 'expression' }).aggregation).to.include({
      field: null,
      expression: 'a + b',
    });
  });

  const countable: [string, Partial<MeterDraft>, boolean][] = [
    ['no name of an event', { event_name: ' ' }, false],
    ['a count', { type: 'COUNT', field: '' }, true],
    ['a sum of nothing', { field: '' }, false],
    ['an expression', { source: 'expression', expression: 'a' }, true],
    ['a factor that is missing', { type: 'SUM_WITH_MULTIPLIER' }, false],
    ['a factor', { type: 'SUM_WITH_MULTIPLIER', multiplier: '0.001' }, true],
  ];
  for (const [name, changes, is] of countable)
    it(`${is ? 'can' : 'cannot'} be tried with ${name}`, () =>
      expect(isCountable({ ...SUM, ...changes })).to.equal(is));
});

describe('the days of a trial', () => {
  it('begin at a midnight and end now', () => {
    expect(findRange(new Date('2026-11-30T12:00:00Z'), 2)).to.deep.equal(RANGE);
  });

  it('each have a point', () => {
    expect(fillDays([{ window_size: '2026-11-30T00:00:00Z', value: '9007199254740993' }], RANGE)).to.deep.equal([
      { at: '2026-11-29T00:00:00.000Z', value: '0' },
      { at: '2026-11-30T00:00:00.000Z', value: '9007199254740993' },
    ]);
  });

  it('can be narrowed to one instant', () => {
    expect(addMicrosecond('2026-11-30T12:00:00.058Z')).to.equal('2026-11-30T12:00:00.058001Z');
    expect(addMicrosecond('2026-11-30T12:00:00Z')).to.equal('2026-11-30T12:00:00.000001Z');
    expect(addMicrosecond('2026-11-30T12:00:59.999999Z')).to.equal('2026-11-30T12:01:00.000Z');
  });
});

describe('the error of an expression', () => {
  const message = 'expression: is not a CEL expression: <input>:2:13: found + but expecting end of input';

  it('stands at its line and column', () => {
    expect(findErrorPlace(message)).to.deep.equal({ line: 2, column: 13 });
    expect(findErrorPlace('expression: has no foo()')).to.equal(null);
  });

  it('is shown without the place', () => {
    expect(shortenError(message)).to.equal('is not a CEL expression: found + but expecting end of input');
    expect(shortenError('aggregation.expression: has no foo()')).to.equal('has no foo()');
  });
});
