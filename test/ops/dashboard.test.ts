/** The dashboard of Grafana asks, in Prometheus's own language, for numbers that there are. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { register } from 'prom-client';
import { evaluate, metricsIn } from '../support/promql.ts';
import { until } from '../support/until.ts';
import { type Operated, startOperated } from './operated.ts';

type Panel = {
  id: number;
  type: string;
  title: string;
  datasource?: { uid: string };
  gridPos: { h: number; w: number; x: number; y: number };
  targets?: { expr: string }[];
};

const FILE = join(import.meta.dirname, '..', '..', 'ops', 'grafana-dashboard.json');
const { panels }: { panels: Panel[] } = JSON.parse(readFileSync(FILE, 'utf8'));

describe('the dashboard', function () {
  this.timeout(60_000);
  let operated: Operated;
  before(async () => {
    operated = await startOperated();
    await operated.ingest();
    await operated.settled();
    await operated.tickUntilAudited();
  });
  after(() => operated.stop());

  // Told long after the first start: when days were made, when a dead letter was sent again.
  const LATER = ['farthing_day_rows_before_timestamp_seconds', 'farthing_dead_letter_replays_total'];

  it('asks for numbers that /metrics tells, and is understood', async () => {
    // Told from the first collection on, and a process with a large young generation may not have had one yet.
    collectGarbage();
    await until('a collection is told', async () =>
      (await operated.scrape()).samples.some(({ name }) => name === 'nodejs_gc_duration_seconds_sum'),
    );
    const scrapes = [await operated.scrape(), await operated.scrape()];
    const told = new Set(scrapes[1]!.samples.map(({ name }) => name));
    for (const { title, targets = [] } of panels)
      for (const { expr } of targets) {
        const unknown = metricsIn(expr).filter((name) => !told.has(name) && !LATER.includes(name));
        expect(unknown, title).to.deep.equal([]);
        evaluate(expr, scrapes);
      }
  });

  it('shows every number of ours', () => {
    const asked = new Set(panels.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => metricsIn(expr))));
    // Those without a sample yet, too.
    const ours = register.getMetricsAsArray().flatMap(({ name }) => (/^farthing_/.test(name) ? [name] : []));
    // Of a histogram the buckets or the sum are enough.
    const missing = ours.filter((name) => ![...asked].some((each) => stem(each) === stem(name)));
    expect(missing).to.deep.equal([]);
  });

  it('has one place for each panel, and the data source that its reader chooses', () => {
    expect(new Set(panels.map(({ id }) => id))).to.have.property('size', panels.length);
    const cells = panels.flatMap(({ gridPos: { h, w, x, y } }) =>
      Array.from({ length: h * w }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells)).to.have.property('size', cells.length);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a variable of Grafana's.
    for (const { type, title, datasource, gridPos } of panels) {
      if (type !== 'row') expect(datasource?.uid, title).to.equal('${datasource}');
      expect(gridPos.h === 1, title).to.equal(type === 'row');
    }
    const asked = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    expect(
      asked.filter((expr, at) => asked.indexOf(expr) !== at),
      'shown twice',
    ).to.deep.equal([]);
  });
});

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

const stem = (name: string) => name.replace(/_(bucket|sum|count)$/, '');
