import { expect } from 'chai';
import { register } from 'prom-client';
import { type Metering, startMetering } from '../support/metering.ts';
import { until } from '../support/until.ts';

const NAME = 'farthing_pipeline_identities';

describe('what the pipeline tells Prometheus', () => {
  let metering: Metering;
  before(async () => {
    metering = await startMetering({ partitions: 3 });
  });
  after(() => metering.stop());

  const partitions = async () => {
    const { values } = await register.getSingleMetric(NAME)!.get();
    return values.map(({ labels }) => labels.partition).sort();
  };
  const areAll = async () => (await partitions()).join() === '0,1,2';

  it('the ids of the partitions that it has, and of none that it has given away', async () => {
    await until('all are taken', areAll);
    await metering.pause();
    expect(await partitions()).to.deep.equal([]);
    await metering.resume();
    await until('all are taken again', areAll);
  });
});
