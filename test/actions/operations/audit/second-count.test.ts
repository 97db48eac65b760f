/** Corrections arrive, or are applied again, while the audit counts twice: it must not call that a difference. */
import { expect } from 'chai';
import { requestCorrection } from '../../../../actions/metering/events/request-correction.ts';
import { auditCorrections } from '../../../../actions/operations/audit/corrections.ts';
import type { Finding } from '../../../../actions/operations/audit/findings.ts';
import { auditSecondCount } from '../../../../actions/operations/audit/second-count.ts';
import type { Stores } from '../../../../storage/foundation/stores.ts';
import { requestCorrectionsAgain } from '../../../../storage/progress/corrections.ts';
import { type Metering, SCOPE, startMetering } from '../../../support/metering.ts';

describe('the second count beside corrections', () => {
  let metering: Metering;
  beforeEach(async () => {
    metering = await startMetering({ partitions: 1 });
    await metering.announce('m', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    await metering.send(['a', 'b', 'c'].map((id) => event(id, id)));
    await metering.waitForPipeline();
    await replaced('a', 'a');
    await metering.waitForPipeline();
  });
  afterEach(() => metering.stop());

  const event = (id: string, customer: string) => ({
    event_id: id,
    event_name: 'call',
    external_customer_id: customer,
    timestamp: '2026-03-10T10:20:00Z',
    properties: { n: '1' },
  });
  const replaced = (id: string, customer: string) =>
    requestCorrection(metering.stores, SCOPE, {
      event_id: id,
      action: 'replace',
      replacement: JSON.stringify(event(id, customer)),
      reason: 'test',
      user_id: 'user_1',
      now: new Date(),
    });
  const audit = async (stores: Pick<Stores, 'postgres' | 'clickhouse'> = metering.stores) => {
    const found: Finding[] = [];
    await auditCorrections(stores, (finding) => found.push(finding));
    await auditSecondCount(stores, { days: 0, chance: Math.random }, (finding) => found.push(finding));
    return found;
  };

  it('an event that a correction brings to a customer meanwhile', async () => {
    let is_due = true;
    // Between the reading of who was named and the first count.
    const raw = (...given: Parameters<Stores['postgres']['raw']>) => {
      const statement = metering.stores.postgres.raw(...given);
      if (!is_due || !given[0].includes('replacement is not null')) return statement;
      is_due = false;
      return statement.then(async (answer) => {
        await replaced('b', 'a');
        await metering.waitForPipeline();
        return answer;
      });
    };
    const postgres = new Proxy(metering.stores.postgres, {
      get: (target, name) => (name === 'raw' ? raw : Reflect.get(target, name)),
    });
    expect(await audit({ ...metering.stores, postgres })).to.deep.equal([]);
    expect(is_due).to.equal(false);
  });

  it('a correction that a repair has asked to be applied again', async () => {
    const { id } = await replaced('c', 'a');
    await metering.waitForPipeline();
    await metering.pause();
    await requestCorrectionsAgain(metering.stores.postgres, [id]);
    expect(await audit()).to.deep.equal([]);
    await metering.resume();
    await metering.waitForPipeline();
    expect(await audit()).to.deep.equal([]);
  });
});
