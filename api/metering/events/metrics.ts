/** Prometheus metrics of event ingestion. No label names a tenant or customer. */
import { Counter, register } from 'prom-client';

const replays = new Counter({
  name: 'farthing_dead_letter_replays_total',
  help: 'Dead letters that were asked to be sent through the log once more, by what became of that',
  labelNames: ['verdict'] as const,
  registers: [register],
});

export const eventMetrics = {
  replays(verdicts: readonly { readonly verdict: string }[]): void {
    for (const { verdict } of verdicts) replays.inc({ verdict });
  },
};
