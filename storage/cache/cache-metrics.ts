/** Prometheus metrics: sources of answers about current periods. */
import { Counter } from 'prom-client';

const answers = new Counter({
  name: 'farthing_running_answers_total',
  help: 'Balances and usage of running periods: as they were kept, made again of usage that has arrived, or gathered anew.',
  labelNames: ['from'],
});
type From = 'cached' | 'arrived' | 'gathered';
// The labels are resolved once, because finding the labels costs more than counting.
const labelled: Record<From, { inc(by?: number): void }> = {
  cached: answers.labels('kept'),
  arrived: answers.labels('arrived'),
  gathered: answers.labels('gathered'),
};
for (const one of Object.values(labelled)) one.inc(0);

export function countRunning(from: From): void {
  labelled[from].inc();
}
