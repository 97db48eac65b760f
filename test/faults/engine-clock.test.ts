/**
 * The engine's clock steps while events arrive: by a minute, by a day, and back. What was accepted before, meanwhile and
 * after takes effect once, and so does what is sent again.
 */
import { expect } from 'chai';
import { type Faulty, startWithFaults } from './with-faults.ts';
import { openWorld } from './world.ts';

const MINUTE_MS = 60_000;
const STEPS: [what: string, ms: number][] = [
  ['a minute and a bit ahead', MINUTE_MS + 5_000],
  ['a day ahead', 1_440 * MINUTE_MS],
  ['an hour back', -60 * MINUTE_MS],
];
const SETTINGS = { LOG_PARTITIONS: '2', SLICE_WAIT_MS: '20' };

describe('the clock of the engine steps', function () {
  this.timeout(300_000);
  let faulty: Faulty;
  let faults: Faulty['faults'];
  let service: Faulty['service'];

  before(async () => {
    faulty = await startWithFaults(SETTINGS);
    ({ faults, service } = faulty);
  });
  after(() => faulty?.stop());

  for (const [what, ms] of STEPS) {
    it(what, async () => {
      const world = await openWorld(service, `clock ${ms}`);
      const step = faults.stepClock(ms);
      const engineNow = async () =>
        service.withStores(async ({ clickhouse }) => {
          const answer = await clickhouse.query({ query: 'select toUnixTimestamp(now()) as s', format: 'JSONEachRow' });
          return (await answer.json<{ s: number }>())[0]!.s * 1000;
        });
      expect(Math.abs((await engineNow()) - Date.now() - ms)).to.be.below(5_000);
      await world.send(40);
      await world.send(5, { singly: true });
      await world.void(world.ids[0]!);
      await world.replace(world.ids[1]!);
      await world.makeMeter({ type: 'MAX', field: 'n' });
      await world.settled();
      await world.sendAgain(30);
      faults.remove(step);
      await world.send(10);
      await world.settled();
      expect(await world.differences()).to.deep.equal([]);
    });
  }
});
