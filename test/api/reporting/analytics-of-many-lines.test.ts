/**
 * Usage of a customer with many lines: fewer statements than lines, whatever is asked, and each line as if it were asked for
 * alone. Before, a thousand lines were a thousand questions in rounds of sixteen, and took twelve seconds.
 */
import { expect } from 'chai';
import type { AnalyticsItem } from '../../support/answers.ts';
import { startWorld, usage, type World } from '../../support/world.ts';

const METERS: Record<string, Record<string, unknown>> = {
  calls: { type: 'COUNT' },
  tokens: { type: 'SUM', field: 'n' },
  peak: { type: 'MAX', field: 'n' },
  last: { type: 'LATEST', field: 'n' },
  level: { type: 'WEIGHTED_SUM', field: 'n' },
  daily: { type: 'SUM', field: 'n', bucket_size: 'DAY' },
  hourly: { type: 'MAX', field: 'n', bucket_size: 'HOUR' },
  people: { type: 'COUNT_UNIQUE', field: 'n' },
  nobody: { type: 'COUNT_UNIQUE', field: 'n' },
};
const NAMES = Object.keys(METERS);
const SUBSCRIPTIONS = { few: 2, many: 5 };

describe('usage of many lines', () => {
  let world: World;
  const march = { start_time: '2026-03-01T00:00:00Z', end_time: '2026-03-20T12:00:00Z' };
  const post = async <Path extends string>(path: Path, body: object) => {
    const answer = await world.api.request('POST', path, { body });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  };
  const analytics = async (body: object) => (await post('/events/analytics', body)).items;

  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    for (const [name, aggregation] of Object.entries(METERS)) await world.meter(name, aggregation);
    await world.plan(
      'Pro',
      NAMES.map((name) => usage(name, '1')),
    );
    for (const customer of ['few', 'many'] as const) {
      for (let index = 0; index < SUBSCRIPTIONS[customer]; index++) {
        // Each begins at another minute, and has another anchor.
        const start_date = `2026-03-0${1 + (index % 3)}T0${index}:1${index}:00Z`;
        await world.subscribe(customer, 'Pro', { start_date, billing_cycle: 'anniversary' });
      }
    }
    world.at('2026-03-20T12:00:00Z');
    await world.send(
      ['few', 'many'].flatMap((customer) =>
        NAMES.filter((name) => name !== 'nobody').flatMap((name, index) =>
          ['2026-03-01T02:12:30Z', '2026-03-02T04:30:00Z', '2026-03-05T10:00:00Z', '2026-03-05T10:30:00Z'].map(
            (at, n) => ({
              ...world.event(customer, name, { n: index + n * 2 + 1, at }),
              source: n % 2 ? 'web' : 'app',
            }),
          ),
        ),
      ),
    );
    await world.waitForPipeline();
  });
  after(() => world.stop());

  /** Statements about usage. Those about progress are left out: calls of one moment share them, and on a busy machine there are more moments. */
  const counted = async (work: () => Promise<unknown>): Promise<number> => {
    const { clickhouse, postgres } = world.api.services;
    let count = 0;
    const ask = clickhouse.query.bind(clickhouse);
    clickhouse.query = ((params: Parameters<typeof ask>[0]) => {
      count++;
      return ask(params);
    }) as typeof clickhouse.query;
    const note = ({ sql }: { sql: string }) => {
      if (/meter_versions|invoice_line_items/.test(sql)) count++;
    };
    postgres.on('query', note);
    try {
      await work();
    } finally {
      clickhouse.query = ask;
      postgres.off('query', note);
    }
    return count;
  };

  const QUESTIONS: Record<string, object> = {
    'a range': {},
    days: { window_size: 'DAY' },
    hours: { window_size: 'HOUR' },
    months: { window_size: 'MONTH' },
    'one source': { sources: ['web'] },
    'groups of sources': { group_by: ['source'] },
  };
  for (const [what, question] of Object.entries(QUESTIONS)) {
    it(`asked for ${what} are fewer statements than lines, and say the same as line by line`, async () => {
      const asked = { ...march, ...question };
      let items: AnalyticsItem[] = [];
      const many = await counted(async () => {
        items = await analytics({ external_customer_id: 'many', ...asked });
      });
      // How many calls share a statement depends on the machine: they are batched by moments. Line by line, each would have its own.
      expect(many).to.be.below(SUBSCRIPTIONS.many * NAMES.length);
      const alone: AnalyticsItem[] = [];
      for (const name of [...NAMES].sort())
        alone.push(
          ...(await analytics({ external_customer_id: 'many', ...asked, meter_ids: [world.id(`meter ${name}`)] })),
        );
      expect(items).to.deep.equal(alone);
      expect(new Set(items.map(({ total_usage }) => total_usage)).size, 'they differ').to.be.greaterThan(5);
    });
  }
});
