/** Five short seeds of `npm run chaos` on one installation; the long ones are in docs/reliability.md. */
import { expect } from 'chai';
import { chaosOn, lineOf } from './chaos.ts';
import { embeddedStage, type Stage } from './stage.ts';

const MINUTES = 0.08;

describe('chaos', function () {
  this.timeout(240_000);
  let stage: Stage;
  before(async () => {
    stage = await embeddedStage();
  });
  after(() => stage.stop());

  for (const seed of [1, 2, 3, 4, 5]) {
    it(`seed ${seed}`, async () => {
      const report = await chaosOn(stage, { seed, minutes: MINUTES });
      console.log(`      ${lineOf(report)}`);
      expect(report.difference).to.equal(undefined);
      expect(report.disturbances).to.be.an('array').that.is.not.empty;
      expect(report.counts.invoices).to.be.greaterThan(0);
    });
  }
});
