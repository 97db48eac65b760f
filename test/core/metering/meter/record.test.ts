import { expect } from 'chai';
import { invalid } from '../../../../core/foundation/error.ts';
import {
  AGGREGATION_TYPES,
  type CompileExpression,
  checkMeter,
  createMeterShape,
  refuseUnclearNames,
} from '../../../../core/metering/meter/record.ts';

const check = (aggregation: object, more: object = {}, compile?: CompileExpression) =>
  checkMeter(createMeterShape.parse({ name: 'Calls', event_name: 'call', aggregation, ...more }), compile);

describe('a meter', () => {
  const accepted: object[] = [
    { type: 'COUNT' },
    { type: 'count', field: 'v' },
    { type: 'SUM', field: 'v', bucket_size: 'hour' },
    { type: 'MAX', field: 'v', bucket_size: 'DAY', group_by: 'host' },
    { type: 'SUM_WITH_MULTIPLIER', field: 'v', multiplier: '0.001' },
    { type: 'SUM_WITH_MULTIPLIER', expression: 'a', multiplier: 2 },
    { type: 'MAX', expression: 'a', bucket_size: '15MIN' },
    ...AGGREGATION_TYPES.map((type) => ({
      type,
      field: 'v',
      expression: 'a * 2',
      ...(type === 'SUM_WITH_MULTIPLIER' ? { multiplier: '1' } : {}),
    })),
  ];
  for (const aggregation of accepted)
    it(`accepts ${JSON.stringify(aggregation)}`, () => expect(() => check(aggregation)).not.to.throw());

  const refused: [string, object][] = [
    ...AGGREGATION_TYPES.filter((type) => type !== 'COUNT').map((type): [string, object] => [
      'aggregation.field',
      { type },
    ]),
    ['aggregation.field', { type: 'SUM', field: ' ' }],
    ['aggregation.field', { type: 'SUM', field: '\u200b' }],
    ['aggregation.field', { type: 'COUNT', field: '   ' }],
    ['aggregation.expression', { type: 'SUM', field: 'v', expression: ' \u2060' }],
    ['aggregation.group_by', { type: 'MAX', field: 'v', bucket_size: 'DAY', group_by: '   ' }],
    ['aggregation.group_by', { type: 'COUNT', group_by: '\u00a0' }],
    ['aggregation.multiplier', { type: 'SUM_WITH_MULTIPLIER', field: 'v' }],
    ['aggregation.multiplier', { type: 'SUM_WITH_MULTIPLIER', field: 'v', multiplier: '0' }],
    ['aggregation.multiplier', { type: 'SUM_WITH_MULTIPLIER', field: 'v', multiplier: '-1' }],
    ['aggregation.multiplier', { type: 'SUM', field: 'v', multiplier: '2' }],
    ...['COUNT', 'AVG', 'COUNT_UNIQUE', 'LATEST', 'WEIGHTED_SUM'].map((type): [string, object] => [
      'aggregation.bucket_size',
      { type, field: 'v', bucket_size: 'HOUR' },
    ]),
    ['aggregation.group_by', { type: 'MAX', field: 'v', group_by: 'host' }],
    ['aggregation.group_by', { type: 'SUM', field: 'v', bucket_size: 'HOUR', group_by: 'host' }],
  ];
  for (const [field, aggregation] of refused)
    it(`refuses ${JSON.stringify(aggregation)}`, () => expect(() => check(aggregation)).to.throw(`${field}:`));

  const unclear: [aggregation: object, message: string][] = [
    [
      { type: 'SUM', field: 'usage.completion_tokens' },
      'aggregation.field: is a name, not a path: leave it out and send an expression, properties.usage.completion_tokens for a value inside an object, properties["usage.completion_tokens"] for the property of that name',
    ],
    [{ type: 'MAX', field: '$.usage.a-b' }, 'properties.usage["a-b"] for a value'],
    [{ type: 'SUM', field: 'properties.tokens' }, 'aggregation.field: is a name, not a path: tokens is enough'],
    [
      { type: 'SUM', expression: '2 * requests/total' },
      'aggregation.expression: has requests/total: write requests / total to divide, or properties["requests/total"] for the property of that name',
    ],
    [{ type: 'SUM', expression: '(prompt-tokens) * 2' }, 'write prompt - tokens to subtract'],
  ];
  for (const [aggregation, message] of unclear)
    it(`refuses the name in ${JSON.stringify(aggregation)}, with the way out`, () => {
      const { aggregation: parsed } = createMeterShape.parse({ name: 'Calls', event_name: 'call', aggregation });
      expect(() => refuseUnclearNames(parsed)).to.throw(message);
    });

  const clear: object[] = [
    { type: 'COUNT', field: 'a.b' },
    { type: 'COUNT_UNIQUE', field: 'user.id' },
    { type: 'SUM', field: 'a/b' },
    ...[
      'a / b',
      'a/2',
      'a - b',
      '-a',
      'a/max(b, 1)',
      '(a)/b',
      'm == "a/b" ? n : 0',
      'properties["a/b"]/properties.c',
    ].map((expression) => ({ type: 'SUM', field: 'a.b', expression })),
  ];
  for (const aggregation of clear)
    it(`accepts the names in ${JSON.stringify(aggregation)}`, () => {
      const { aggregation: parsed } = createMeterShape.parse({ name: 'Calls', event_name: 'call', aggregation });
      expect(() => refuseUnclearNames(parsed)).not.to.throw();
    });

  const counted = { type: 'COUNT' };
  it('needs a name, an event name, and filters that say something', () => {
    expect(() => check(counted, { name: '  ' })).to.throw('name:');
    expect(() => check(counted, { event_name: '\t' })).to.throw('event_name:');
    expect(() => check(counted, { event_name: '\u200d' })).to.throw('event_name:');
    for (const key of ['', '  ', '\ufeff'])
      expect(() => check(counted, { filters: [{ key, values: ['a'] }] }), key).to.throw('filters[0].key:');
    expect(() =>
      check(counted, {
        filters: [
          { key: 'a', values: ['b'] },
          { key: 'c', values: [] },
        ],
      }),
    ).to.throw('filters[1].values:');
    expect(() => check(counted, { filters: null })).not.to.throw();
  });

  it('compiles its expression, and passes on what is wrong with it', () => {
    const seen: string[] = [];
    check({ type: 'SUM', expression: 'a * 2' }, {}, (text) => seen.push(text));
    expect(seen).to.deep.equal(['a * 2']);
    const fail = () => {
      throw invalid('aggregation.expression', 'does not compile');
    };
    expect(() => check({ type: 'SUM', expression: 'a *' }, {}, fail)).to.throw('does not compile');
  });

  it('trims the event name, resets with the billing period, and has every key', () => {
    const meter = createMeterShape.parse({ name: 'Calls', event_name: ' call ', aggregation: counted });
    expect(meter).to.deep.equal({
      name: 'Calls',
      event_name: 'call',
      aggregation: {
        type: 'COUNT',
        field: null,
        expression: null,
        multiplier: null,
        bucket_size: null,
        group_by: null,
      },
      filters: [],
      reset_usage: 'BILLING_PERIOD',
    });
  });
});
