import { expect } from 'chai';
import { checkCost, EVENT_NAME_COST_MAX } from '../../../core/metering/meter-cost.ts';
import type { MeterDefinition } from '../../../core/metering/meter-definition.ts';

describe('the cost of all meters of one event name', () => {
  const meter: MeterDefinition = {
    id: 'meter_1',
    event_name: 'call',
    filters: [],
    aggregation: { type: 'COUNT' },
    reset_usage: 'BILLING_PERIOD',
  };
  const add = (own: MeterDefinition, count: number) =>
    checkCost(own, { others: Array.from({ length: count }, () => own), field: 'event_name' });
  const filter = (key: string) => ({ key, values: ['v'] });

  const CASES: [what: string, own: MeterDefinition, count_max: number][] = [
    ['without filters', meter, 250],
    ['with one filter', { ...meter, filters: [filter('a')] }, 199],
    ['that count distinct values', { ...meter, aggregation: { type: 'COUNT_UNIQUE', field: 'n' } }, 50],
  ];
  for (const [what, own, count_max] of CASES)
    it(`lets ${count_max} meters ${what} in, and not one more`, () => {
      add(own, count_max - 1);
      expect(() => add(own, count_max)).to.throw(`at most ${EVENT_NAME_COST_MAX} are allowed`);
    });
});
