import { expect } from 'chai';
import { makeDailyRollupsJob } from '../../scheduler/jobs/make-daily-rollups.ts';
import { readDaysBefore } from '../../storage/progress/partition-progress.ts';
import { readProgress } from '../../storage/progress/slices.ts';
import { startMetering } from '../support/metering.ts';
import { until } from '../support/until.ts';

describe('job make-day-rows, which makes daily rollups', () => {
  it('asks for the days that have been over for long enough, while they have no daily rollups', async () => {
    const metering = await startMetering();
    try {
      const job = makeDailyRollupsJob(metering.stores, { every_seconds: 300, after_days: 2 });
      const run = async (now: string) => {
        const { asked } = (await job.run(new Date(now))).done;
        await metering.waitForPipeline();
        return { asked, made: new Date(readDaysBefore(await readProgress(metering.stores.postgres)) * 86_400_000) };
      };
      // Before its partitions are taken a pipeline has nothing to make them of.
      await until('partitions are taken', async () => (await readProgress(metering.stores.postgres)).length > 0);
      const made = new Date('2026-03-08T00:00:00Z');
      expect(await run('2026-03-10T00:00:00Z')).to.deep.equal({ asked: 1, made });
      expect(await run('2026-03-10T23:59:59Z')).to.deep.equal({ asked: 0, made });
      const next = new Date('2026-03-09T00:00:00Z');
      expect(await run('2026-03-11T00:00:00Z')).to.deep.equal({ asked: 1, made: next });
    } finally {
      await metering.stop();
    }
  });
});
