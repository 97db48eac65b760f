/** Two short seeds of `npm run chaos -- --kafka` on one installation; the long ones are in docs/reliability.md. */
import { expect } from 'chai';
import { chaosOn, lineOf } from '../chaos/chaos.ts';
import { kafkaStage } from '../chaos/kafka-stage.ts';
import type { Stage } from '../chaos/stage.ts';

const MINUTES = 0.15;

describe('chaos on Kafka', function () {
  this.timeout(400_000);
  let stage: Stage;
  before(async () => {
    stage = await kafkaStage();
  });
  after(() => stage.stop());

  for (const seed of [1, 2]) {
    it(`seed ${seed}`, async () => {
      const report = await chaosOn(stage, { seed, minutes: MINUTES });
      console.log(`      ${lineOf(report)}`);
      expect(report.difference).to.equal(undefined);
      expect(report.disturbances).to.be.an('array').that.is.not.empty;
      expect(report.counts.invoices).to.be.greaterThan(0);
    });
  }
});
