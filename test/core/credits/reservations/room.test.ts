/** What there is room for, and what a committed reservation becomes: tables (docs/rules/reservations.md). */
import { expect } from 'chai';
import { buildCommittedEvents, buildEventTexts } from '../../../../core/credits/reservations/event.ts';
import {
  deriveFeatureVerdict,
  type FeatureLimit,
  type FeatureRoom,
  findTightestLimit,
} from '../../../../core/credits/reservations/room.ts';
import { Decimal, ZERO } from '../../../../core/foundation/decimal.ts';
import { FarthingError } from '../../../../core/foundation/error.ts';
import { compileMeter } from '../../../../core/metering/compiled-meter.ts';
import type { MeterDefinition } from '../../../../core/metering/meter-definition.ts';

function limitOf(limit: string | null, fields: Partial<FeatureLimit> = {}): FeatureLimit {
  return {
    limit: limit === null ? null : new Decimal(limit),
    is_soft_limit: false,
    usage_reset_period: 'MONTHLY',
    grant_measure: null,
    window_start: '2026-01-01T00:00:00.000Z',
    window_end: '2026-02-01T00:00:00.000Z',
    counted: ZERO,
    committed: ZERO,
    doubtful: ZERO,
    held_by_others: ZERO,
    ...fields,
  };
}
const used = (counted: string, committed = '0', doubtful = '0') => ({
  counted: new Decimal(counted),
  committed: new Decimal(committed),
  doubtful: new Decimal(doubtful),
});
const limited = (...limits: FeatureLimit[]): FeatureRoom => ({
  kind: 'limited',
  limits,
  as_of: '2026-01-15T00:00:00Z',
});

describe('what there is room for', () => {
  const rows: [
    what: string,
    room: FeatureRoom,
    quantity: string,
    held: string,
    expected: [boolean, string, boolean],
  ][] = [
    ['up to the limit', limited(limitOf('100', used('60'))), '30', '10', [true, 'within_limit', false]],
    ['one more', limited(limitOf('100', used('60'))), '31', '10', [false, 'limit_reached', false]],
    [
      'for others, too',
      limited(limitOf('100', { ...used('60'), held_by_others: new Decimal('10') })),
      '21',
      '10',
      [false, 'limit_reached', false],
    ],
    ['what was committed', limited(limitOf('100', used('60', '10'))), '31', '0', [false, 'limit_reached', false]],
    ['in doubt', limited(limitOf('100', used('60', '10', '10'))), '31', '0', [false, 'limit_reached', true]],
    ['no doubt helps', limited(limitOf('100', used('60', '10', '10'))), '41', '0', [false, 'limit_reached', false]],
    ['numbers in doubt', limited(limitOf('100', used('60', '10', '10'))), '5', '0', [true, 'within_limit', true]],
    ['soft', limited(limitOf('100', { is_soft_limit: true })), '101', '0', [true, 'over_soft_limit', false]],
    [
      'hard beside soft',
      limited(limitOf('100', { is_soft_limit: true }), limitOf('200')),
      '201',
      '0',
      [false, 'limit_reached', false],
    ],
    ['unlimited beside a limit', limited(limitOf(null), limitOf('1')), '2', '0', [false, 'limit_reached', false]],
    ['nothing granted', limited(limitOf('0')), '1', '0', [false, 'limit_reached', false]],
    ['nothing limits it', { kind: 'open' }, '1000000', '0', [true, 'entitled', false]],
    ['not there', { kind: 'none', reason: 'not_entitled' }, '0', '0', [false, 'not_entitled', false]],
    ['not known', { kind: 'unknown' }, '1', '0', [false, 'in_doubt', false]],
  ];
  for (const [what, room, quantity, held, [allowed, reason, is_doubtful]] of rows)
    it(what, () => {
      const asked = { quantity: new Decimal(quantity), held: new Decimal(held), when_in_doubt: 'deny' as const };
      expect(deriveFeatureVerdict(room, asked)).to.deep.include({ allowed, reason, is_doubtful });
    });

  it('where it is not known the setting says', () => {
    const asked = { quantity: ZERO, held: ZERO, when_in_doubt: 'allow' as const };
    expect(deriveFeatureVerdict({ kind: 'unknown' }, asked)).to.deep.include({ allowed: true, reason: 'in_doubt' });
    expect(deriveFeatureVerdict({ kind: 'none', reason: 'not_enabled' }, asked)).to.deep.include({ allowed: false });
  });

  it('the answer is about the hard limit of which the least is left', () => {
    const soft = limitOf('5', { is_soft_limit: true });
    const [wide, narrow] = [limitOf('100', used('10')), limitOf('90', used('10'))];
    expect(findTightestLimit([limitOf(null), wide, soft, narrow])).to.equal(narrow);
    expect(findTightestLimit([limitOf(null), soft])).to.equal(soft);
    expect(findTightestLimit([])).to.equal(undefined);
  });
});

describe('the events of a committed reservation', () => {
  const meter = (aggregation: MeterDefinition['aggregation'], filters: MeterDefinition['filters'] = []) =>
    compileMeter({ id: 'm', event_name: ' calls ', filters, aggregation, reset_usage: 'BILLING_PERIOD' });
  const become = (of: ReturnType<typeof meter>, quantity: string, properties = {}) =>
    buildEventTexts(
      'resv_1',
      buildCommittedEvents(of, { external_customer_id: 'acme', quantity: new Decimal(quantity), properties, at: 0 }),
    ).map((text) => JSON.parse(text));

  it('say what was used, under the id', () => {
    const head = {
      event_name: 'calls',
      external_customer_id: 'acme',
      timestamp: '1970-01-01T00:00:00.000Z',
      source: 'reservation',
    };
    expect(become(meter({ type: 'SUM', field: 'n' }), '0.1', { region: 'eu' })).to.deep.equal([
      { event_id: 'resv_1', ...head, properties: { region: 'eu', n: '0.1' } },
    ]);
    expect(become(meter({ type: 'COUNT' }), '2').map((event) => event.event_id)).to.deep.equal(['resv_1', 'resv_1:2']);
    expect(become(meter({ type: 'SUM', field: 'n' }), '0')).to.deep.equal([]);
  });

  it('have what the meter asks for, or are refused by name', () => {
    const one = [{ key: 'region', values: ['eu'] }];
    expect(become(meter({ type: 'COUNT' }, one), '1')[0].properties).to.deep.equal({ region: 'eu' });
    const two = meter({ type: 'COUNT' }, [{ key: 'region', values: ['eu', 'us'] }]);
    expect(() => become(two, '1')).to.throw(FarthingError, 'properties.region');
    expect(() => become(two, '1', { region: 'ap' })).to.throw(FarthingError, 'properties.region');
    expect(become(two, '1', { region: 'us' })).to.have.lengthOf(1);
  });

  it('are counted as what was committed, whatever makes a number of them', () => {
    const product = meter({ type: 'SUM', expression: 'a * b' });
    expect(become(product, '6', { a: 2, b: 3 })).to.have.lengthOf(1);
    expect(() => become(product, '7', { a: 2, b: 3 })).to.throw(FarthingError, 'makes 6 of this event, and not 7');
    const thirds = meter({ type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '3' });
    expect(become(thirds, '6')[0].properties).to.deep.equal({ n: '2' });
    expect(() => become(thirds, '1')).to.throw(FarthingError, 'and not 1');
    expect(() => become(meter({ type: 'COUNT' }), '1.5')).to.throw(FarthingError, 'whole');
    expect(() => become(meter({ type: 'COUNT' }), '1001')).to.throw(FarthingError, '1000');
  });
});
