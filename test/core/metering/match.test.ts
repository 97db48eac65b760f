import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { canonicalNumber } from '../../../core/metering/canonical-number.ts';
import { properties } from '../../../core/metering/event-text.ts';
import { compileMeters, explainMismatch, matches } from '../../../core/metering/match.ts';
import type { MeterDefinition, MeterFilterDefinition } from '../../../core/metering/meter-definition.ts';
import { samples } from '../../support/samples.ts';

const REGION_AND_TIER = [
  { key: 'region', values: ['us-east-1', 'us-west-2'] },
  { key: 'tier', values: ['premium'] },
];

describe('match: all filters hold, any value of each', () => {
  const table: [MeterFilterDefinition[], string, boolean][] = [
    [REGION_AND_TIER, '{"region":"us-east-1","tier":"premium"}', true],
    [REGION_AND_TIER, '{"region":"us-east-1"}', false],
    [REGION_AND_TIER, '{"region":"eu-west-1","tier":"premium"}', false],
    [REGION_AND_TIER, '{"region":"us-west-2","tier":"premium","extra":"x"}', true],
    [REGION_AND_TIER, '{"region":"US-EAST-1","tier":"premium"}', false],
    [[], '{}', true],
    [[{ key: 'a.b', values: ['1'] }], '{"a":{"b":"1"}}', false],
    [[{ key: 'a.b', values: ['1'] }], '{"a.b":"1"}', true],
    [[{ key: 'flag', values: ['true'] }], '{"flag":true}', true],
    [[{ key: 'flag', values: ['true'] }], '{"flag":false}', false],
    [[{ key: 'flag', values: ['true'] }], '{"flag":"true"}', true],
    [[{ key: 'n', values: ['1000000'] }], '{"n":1e6}', true],
    [[{ key: 'n', values: ['1000000'] }], '{"n":1000000.0}', true],
    [[{ key: 'n', values: ['1e6'] }], '{"n":1000000}', true],
    [[{ key: 'n', values: ['1000000'] }], '{"n":"1e6"}', false],
    [[{ key: 'n', values: ['1e6'] }], '{"n":"1e6"}', true],
    [[{ key: 'n', values: ['0'] }], '{"n":-0.0}', true],
    [[{ key: 'n', values: ['007'] }], '{"n":7}', false],
    [[{ key: 'n', values: ['007'] }], '{"n":"007"}', true],
    [[{ key: 'n', values: ['1000000000000000000000'] }], '{"n":1e21}', true],
    [[{ key: 'n', values: ['9007199254740993'] }], '{"n":9007199254740992}', false],
    [[{ key: 'n', values: ['1e99999999999999999999'] }], '{"n":10e99999999999999999998}', true],
    [[{ key: 'v', values: ['null', ''] }], '{"v":null}', false],
    [[{ key: 'v', values: ['', 'undefined'] }], '{}', false],
    [[{ key: 'v', values: [''] }], '{"v":""}', true],
    [[{ key: 'v', values: ['{}', '[object Object]'] }], '{"v":{}}', false],
    [[{ key: 'v', values: ['[]', '1', ''] }], '{"v":[1]}', false],
    [[{ key: 'toString', values: ['x'] }], '{}', false],
    [[{ key: 'v', values: [' a'] }], '{"v":"a"}', false],
  ];
  for (const [filters, sent, expected] of table) {
    it(`${JSON.stringify(filters)} ${expected ? 'accepts' : 'refuses'} ${sent}`, () => {
      const meter = compileMeters([meterWith({ filters })]).get('call')![0]!;
      expect(matches(meter, properties(sent))).to.equal(expected);
      expect(explainMismatch(meter, properties(sent)) === undefined).to.equal(expected);
    });
  }

  it('indexes meters by their trimmed event name', () => {
    const index = compileMeters([
      meterWith({ id: 'a', event_name: ' call ' }),
      meterWith({ id: 'b', event_name: 'call' }),
      meterWith({ id: 'c', event_name: 'other' }),
    ]);
    expect(index.get('call')?.map((meter) => meter.id)).to.deep.equal(['a', 'b']);
    expect(index.get('other')?.map((meter) => meter.id)).to.deep.equal(['c']);
    expect(index.get('toString')).to.equal(undefined);
  });

  it('says which filter refused, and why, for the event debugger', () => {
    const meter = compileMeters([meterWith({ filters: REGION_AND_TIER })]).get('call')![0]!;
    expect(explainMismatch(meter, properties('{"region":"us-east-1"}'))).to.deep.equal({
      key: 'tier',
      accepted: ['premium'],
      why: 'missing',
    });
    expect(explainMismatch(meter, properties('{"region":"mars"}'))?.why).to.equal('not an accepted value');
    expect(explainMismatch(meter, properties('{"region":null}'))?.why).to.equal('not a string, number or boolean');
  });

  it('gives equal numbers one text and different numbers different texts', () => {
    const number = fc
      .tuple(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), fc.integer({ min: -60, max: 60 }))
      .map(([mantissa, exponent]) => ({
        text: `${mantissa}e${exponent}`,
        value: new Decimal(`${mantissa}e${exponent}`),
      }));
    fc.assert(
      fc.property(number, number, ({ text, value }, other) => {
        const sameNumber = [
          text,
          value.isZero() ? '0' : value.toFixed(),
          value.isZero() ? '-0.0' : value.toExponential(),
        ];
        const texts = new Set(sameNumber.map(canonicalNumber));
        expect([...texts]).to.have.length(1);
        expect(canonicalNumber(text) === canonicalNumber(other.text)).to.equal(value.equals(other.value));
        expect(new Decimal(canonicalNumber(text)).equals(value)).to.equal(true);
      }),
      { numRuns: samples(500) },
    );
  });
});

function meterWith(part: Partial<MeterDefinition>): MeterDefinition {
  return {
    id: 'meter_1',
    event_name: 'call',
    filters: [],
    aggregation: { type: 'COUNT' },
    reset_usage: 'BILLING_PERIOD',
    ...part,
  };
}
