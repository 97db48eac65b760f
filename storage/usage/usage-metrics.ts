/** Prometheus metrics: the sources of usage answers. */
import { Counter, register } from 'prom-client';

const SOURCES = ['memory', 'rows', 'raw'] as const;
type UsageSource = (typeof SOURCES)[number];

const answers = new Counter({
  name: 'farthing_usage_answers_total',
  help: 'Answers about usage, by what they came from: memory, pre-aggregated rows (with raw events at unaligned edges, and in doubt), raw events alone',
  labelNames: ['source'] as const,
  registers: [register],
});
for (const source of SOURCES) answers.inc({ source }, 0);

export function countAnswer(source: UsageSource): void {
  answers.inc({ source });
}
