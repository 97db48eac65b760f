/** Five short seeds of `npm run chaos`; the long ones are in docs/reliability.md. */
import { expect } from 'chai';
import { lineOf, runChaos } from './chaos.ts';

const MINUTES = 0.1;

describe('chaos', function () {
  this.timeout(240_000);
  for (const seed of [1, 2, 3, 4, 5]) {
    it(`seed ${seed}`, async () => {
      const report = await runChaos({ seed, minutes: MINUTES });
      console.log(`      ${lineOf(report)}`);
      expect(report.difference).to.equal(undefined);
      expect(report.disturbances).to.be.an('array').that.is.not.empty;
    });
  }
});
