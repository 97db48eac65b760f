import { setImmediate as immediate } from 'node:timers/promises';
import { expect } from 'chai';
import { planSegments } from '../../../core/metering/analytics/segments.ts';
import { compileMeter } from '../../../core/metering/compiled-meter.ts';
import { runYielding, TimeSlicer } from '../../../storage/concurrency/time-slicer.ts';

describe('turns of long work', () => {
  /** Each does so many stretches, and notes at which round of the event loop. */
  async function work(turns: TimeSlicer, stretches: number, round: () => number): Promise<number[]> {
    const rounds: number[] = [];
    for (let stretch = 0; stretch < stretches; stretch++) {
      await turns.next();
      rounds.push(round());
    }
    return rounds;
  }

  async function counting<Answer>(all: (round: () => number) => Promise<Answer>): Promise<Answer> {
    let round = 0;
    let isDone = false;
    const counter = (async () => {
      while (!isDone) {
        await immediate();
        round++;
      }
    })();
    const answer = await all(() => round);
    isDone = true;
    await counter;
    return answer;
  }

  it('one stretch of all questions in a round, however many there are', async () => {
    const rounds = await counting((round) =>
      Promise.all(Array.from({ length: 50 }, () => work(new TimeSlicer('acme'), 3, round))),
    );
    const all = rounds.flat();
    expect(all.length).to.equal(150);
    expect(Math.max(...all) - Math.min(...all)).to.be.at.least(140);
  });

  it('tens of thousands of windows are planned step by step, so that others have their turn meanwhile', async () => {
    const meter = compileMeter({
      id: 'm',
      event_name: 'call',
      filters: [],
      aggregation: { type: 'COUNT' },
      reset_usage: 'BILLING_PERIOD',
    });
    const minutes = 500_000;
    const asked = {
      start_us: 0,
      end_us: minutes * 60_000_000,
      window_size: 'MINUTE',
      grid: { timezone: 'UTC' },
    } as const;
    const turns = await counting(async (round) => {
      const began = round();
      const { segments } = await runYielding(planSegments(meter, asked), { asker: 'acme' });
      expect(segments).to.have.length(minutes);
      return round() - began;
    });
    expect(turns).to.be.at.least(3);
  });

  it('the pipeline has a turn in each round beside them', async () => {
    const [own] = await counting((round) =>
      Promise.all([
        work(new TimeSlicer(), 20, round),
        ...Array.from({ length: 50 }, () => work(new TimeSlicer('acme'), 3, round)),
      ]),
    );
    expect(own!.at(-1)! - own![0]!).to.be.at.most(30);
  });

  it('of two tenants each has every other turn, whatever one of them asks', async () => {
    const [own] = await counting((round) =>
      Promise.all([
        work(new TimeSlicer('other'), 10, round),
        ...Array.from({ length: 50 }, () => work(new TimeSlicer('acme'), 3, round)),
      ]),
    );
    expect(own!.at(-1)! - own![0]!).to.be.at.most(30);
  });

  it('what was called off ends at its next turn', async () => {
    const caller = new AbortController();
    const turn = new TimeSlicer('acme').next(caller.signal);
    caller.abort(new Error('gone'));
    expect(await turn.catch((error: Error) => error.message)).to.equal('gone');
  });
});
