/** What the scheduler tells Prometheus. */
import { expect } from 'chai';
import { register } from 'prom-client';
import { jobMetrics } from '../../scheduler/metrics.ts';

describe('the metrics of jobs', () => {
  it('count what a run has done while it goes on, and at its end, once', async () => {
    const tell = jobMetrics.growing('test-job');
    const counted = async () => {
      const { values } = await register.getSingleMetric('farthing_job_records_total')!.get();
      return values.find(({ labels }) => labels['task'] === 'test-job' && labels['done'] === 'billed')?.value;
    };
    tell({ billed: 100 });
    expect(await counted()).to.equal(100);
    tell({ billed: 300 });
    tell({ billed: 300 });
    expect(await counted()).to.equal(300);
    jobMetrics.growing('test-job')({ billed: 5 });
    expect(await counted()).to.equal(305);
  });
});
