/** Short seeds of `npm run chaos` on one installation, as tests; the long ones are in docs/reliability.md. */
import { expect } from 'chai';
import { chaosOn, lineOf } from '../chaos/chaos.ts';
import type { Stage } from '../chaos/stage.ts';

type Seeds = { seeds: readonly number[]; minutes: number; timeout_ms: number };

export function chaosSeeds(title: string, open: () => Promise<Stage>, { seeds, minutes, timeout_ms }: Seeds): void {
  describe(title, function () {
    this.timeout(timeout_ms);
    let stage: Stage;
    before(async () => {
      stage = await open();
    });
    after(() => stage.stop());

    for (const seed of seeds) {
      it(`seed ${seed}`, async () => {
        const report = await chaosOn(stage, { seed, minutes });
        console.log(`      ${lineOf(report)}`);
        // The difference is the message, because chai shortens long values.
        if (report.difference !== undefined) expect.fail(report.difference);
        expect(report.disturbances).to.be.an('array').that.is.not.empty;
        expect(report.counts.invoices).to.be.greaterThan(0);
      });
    }
  });
}
