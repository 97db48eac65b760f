import { setImmediate as immediate } from 'node:timers/promises';
import { expect } from 'chai';
import { FairShare } from '../../api/metering/events/fair-share.ts';

describe('the share of a tenant in what is accepted', () => {
  const NOW = Date.parse('2026-03-15T12:00:00Z');

  const ORDINARY = { cost: 34, meters: 1 };
  const CROWDED = { cost: 3_400, meters: 100 };

  /** A log whose oldest event has waited for so long, and one bulk of each tenant that is named. */
  async function answers(waiting_ms: number | null, senders: readonly string[], worst = ORDINARY): Promise<string[]> {
    let now = NOW;
    const lag = async () => {
      const oldest_unprocessed_at_us = waiting_ms === null ? null : (NOW - waiting_ms) * 1000;
      return [{ partition: 0, end_offset: 1n, committed_offset: 0n, unprocessed_records: 1, oldest_unprocessed_at_us }];
    };
    const share = new FairShare({ lag }, async ({ tenant_id }) => (tenant_id === 'flood' ? worst : ORDINARY));
    const found: string[] = [];
    for (const tenant of senders) {
      const events = tenant === 'flood' ? 1_000 : 1;
      try {
        share.admit({ tenant_id: tenant, environment_id: 'live' }, { events, bytes: events * 300 }, now++);
        found.push('accepted');
      } catch (error) {
        found.push((error as { code: string }).code);
      }
      // What the look has found is there for the next.
      await immediate();
    }
    return found;
  }

  const flood = Array.from({ length: 10 }, () => 'flood');

  it('has no bounds while nothing waits', async () => {
    for (const waiting of [null, 0, 700])
      expect(new Set(await answers(waiting, ['quiet', ...flood]))).to.deep.equal(new Set(['accepted']));
  });

  it('nor when nobody else sends', async () => {
    expect(new Set(await answers(60_000, flood, CROWDED))).to.deep.equal(new Set(['accepted']));
  });

  it('to whom most belongs of what waits comes again when others wait too, and they do not', async () => {
    const found = await answers(5_000, ['quiet', ...flood, 'quiet', 'quiet', 'third', 'flood']);
    expect(found.slice(0, 3)).to.deep.equal(['accepted', 'accepted', 'accepted']);
    expect(found.slice(-4)).to.deep.equal(['accepted', 'accepted', 'accepted', 'too_many_requests']);
  });

  it('so does he who has sent more work than half a second holds, before anybody has waited for it', async () => {
    const found = await answers(0, ['quiet', ...flood, 'quiet', 'flood'], CROWDED);
    expect(found.slice(0, 3)).to.deep.equal(['accepted', 'accepted', 'accepted']);
    expect(found.slice(-2)).to.deep.equal(['accepted', 'too_many_requests']);
  });

  it('large bodies are work as well, whether or not a meter looks at them', async () => {
    const share = new FairShare({ lag: async () => [] }, async () => ({ cost: 0, meters: 0 }));
    const send = (tenant_id: string, bytes: number) =>
      share.admit({ tenant_id, environment_id: 'live' }, { events: 1_000, bytes }, NOW);
    send('quiet', 300);
    send('flood', 30_000_000);
    expect(() => send('flood', 30_000_000)).to.throw('send again in a second');
    expect(() => send('quiet', 300)).not.to.throw();
  });

  it('corrections are work as well, however small they are', async () => {
    const lag = async () => [];
    const share = new FairShare({ lag }, async () => ORDINARY);
    const flood = { tenant_id: 'flood', environment_id: 'live' };
    share.admit({ tenant_id: 'quiet', environment_id: 'live' }, { events: 1, bytes: 300 }, NOW);
    const correct = () => share.admit(flood, { corrections: 1 }, NOW);
    for (let i = 0; i < 20; i++) expect(correct).not.to.throw();
    expect(correct).to.throw('send again in a second');
  });

  it('a pipeline that stands still sends nobody away for long: accepted events wait in the log', async () => {
    const oldest_unprocessed_at_us = NOW * 1000;
    const still = {
      partition: 0,
      end_offset: 9n,
      committed_offset: 3n,
      unprocessed_records: 6,
      oldest_unprocessed_at_us,
    };
    const share = new FairShare({ lag: async () => [still] }, async () => CROWDED);
    const scopeOf = (tenant_id: string) => ({ tenant_id, environment_id: 'live' });
    const verdicts = [];
    for (let second = 0; second <= 12; second++) {
      const now = NOW + second * 1000;
      for (const _turn of [1, 2]) {
        share.admit(scopeOf('quiet'), { events: 1, bytes: 300 }, now);
        await immediate();
      }
      try {
        share.admit(scopeOf('flood'), { events: 1_000, bytes: 300_000 }, now);
        verdicts.push('accepted');
      } catch {
        verdicts.push('refused');
      }
    }
    const refused = Array.from({ length: 9 }, () => 'refused');
    expect(verdicts).to.deep.equal(['accepted', ...refused, 'accepted', 'accepted', 'accepted']);
  });
});
