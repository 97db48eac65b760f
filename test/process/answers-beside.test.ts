/** APIs and pipelines as processes of their own: what the APIs keep in memory is brought forward by what slices tell (docs/decisions/0007-cached-answers.md). */
import { expect } from 'chai';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { until } from '../support/until.ts';

const APIS = [0, 1];

describe('answers that are kept beside the pipeline', function () {
  this.timeout(300_000);
  let cluster: Cluster;
  let wallet_id: string;
  let used = 0;
  let sent = 0;

  const post = async <Path extends string>(path: Path, body: object) => {
    const { status, body: answer } = await cluster.request('POST', path, { body });
    expect(status, `${path}: ${JSON.stringify(answer)}`).to.be.oneOf([200, 201, 202]);
    return answer;
  };
  const use = async (...units: number[]) => {
    const timestamp = new Date().toISOString();
    const events = units.map((n) => {
      used += n;
      return {
        event_id: `e${++sent}`,
        event_name: 'calls',
        external_customer_id: 'acme',
        timestamp,
        properties: { n },
      };
    });
    await post('/events/bulk', { events });
  };
  const balances = () =>
    Promise.all(
      APIS.map(async (api) => {
        const { body } = await cluster.request('GET', `/wallets/${wallet_id}/balance/real-time`, { api });
        return Number(body.real_time_balance);
      }),
    );
  const answersOf = async (api: number): Promise<Record<string, number>> => {
    const text = (await cluster.process('api', api).get('/metrics')).body as unknown as string;
    const found = text.matchAll(/^farthing_running_answers_total\{from="(\w+)"\} (\d+)$/gm);
    return Object.fromEntries(Array.from(found, ([, from, count]) => [from, Number(count)]));
  };
  const right = async (when: string) => {
    await cluster.waitForPipeline();
    expect(await balances(), when).to.deep.equal(APIS.map(() => 0 - 2 * used));
  };
  /** Until both have made an answer of what arrived, and not gathered it. */
  const broughtForward = (when: string) =>
    until(
      `${when}: both bring answers forward`,
      async () => {
        const before = await Promise.all(APIS.map(answersOf));
        await use(1);
        await right(when);
        const after = await Promise.all(APIS.map(answersOf));
        return APIS.every(
          (api) =>
            (after[api]!.arrived ?? 0) > (before[api]!.arrived ?? 0) && after[api]!.gathered === before[api]!.gathered,
        );
      },
      60_000,
    );

  before(async () => {
    cluster = await startCluster({ apis: 2, pipelines: 2, partitions: 4 });
    const aggregation = { type: 'SUM', field: 'n' };
    const { id: meter_id } = await post('/meters', { name: 'calls', event_name: 'calls', aggregation });
    const { id: plan_id } = await post('/plans', { name: 'Calls' });
    await post('/prices', {
      entity_type: 'PLAN',
      entity_id: plan_id,
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      billing_cadence: 'RECURRING',
      price_unit_type: 'FIAT',
      start_date: '2020-01-01T00:00:00Z',
      meter_id,
      type: 'USAGE',
      billing_model: 'FLAT_FEE',
      invoice_cadence: 'ARREAR',
      amount: '2',
    });
    await post('/customers', { external_id: 'acme' });
    const terms = { plan_id, currency: 'usd', billing_period: 'MONTHLY', billing_period_count: 1 };
    await post('/subscriptions', { external_customer_id: 'acme', ...terms });
    ({ id: wallet_id } = await post('/wallets', { external_customer_id: 'acme', currency: 'usd' }));
  });
  after(() => cluster?.stop());

  it('are right at each API, and brought forward by usage of all partitions', async () => {
    await right('at first');
    await broughtForward('one by one');
    await use(...Array.from({ length: 40 }, (_, n) => n));
    await right('many at a time');
    await broughtForward('behind many');
  });

  it('are right when a worker dies, and go on with the next one', async () => {
    const [dying] = cluster.processes('pipeline');
    const killed = dying!.kill('SIGKILL');
    await use(...Array.from({ length: 40 }, () => 3));
    await killed;
    await cluster.restart(dying!);
    await right('after a death');
    await broughtForward('after a death');
  });

  it('are right when an event is voided', async () => {
    await use(50);
    await right('before');
    await post(`/events/e${sent}/void`, { reason: 'wrong' });
    await until('it is voided', async () => {
      const { body } = await cluster.request('GET', `/events/e${sent}/corrections`);
      return body.items.every(({ state }) => state === 'applied');
    });
    used -= 50;
    await right('voided');
    await broughtForward('behind a correction');
  });
});
