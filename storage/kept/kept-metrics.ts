/** What answers about running periods were made of. */
import { Counter } from 'prom-client';

const answers = new Counter({
  name: 'farthing_running_answers_total',
  help: 'Balances and usage of running periods: as they were kept, made again of usage that has arrived, or gathered anew.',
  labelNames: ['from'],
});
for (const from of ['kept', 'arrived', 'gathered']) answers.inc({ from }, 0);

export function countRunning(from: 'kept' | 'arrived' | 'gathered'): void {
  answers.inc({ from });
}
