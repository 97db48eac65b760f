/**
 * Prometheus metrics of the ledger, by partition. Each number is one Postgres statement, so it reads one snapshot. Any value but 0
 * is a fault to investigate (docs/operations.md).
 */
import { Gauge, register } from 'prom-client';
import { countUnaccountedRecords } from '../audit/ledger.ts';
import { countUnaccountedEvents, logAccounts } from '../audit/log-accounts.ts';
import { runWithTimeout } from '../foundation/in-time.ts';
import type { Stores } from '../foundation/stores.ts';
import { EmbeddedLog } from '../log/embedded/embedded.ts';

const NAMES = ['farthing_events_unaccounted', 'farthing_ledger_unsettled_records'] as const;
const [UNACCOUNTED, UNSETTLED] = NAMES;

export function measureLedger({ postgres, log }: Pick<Stores, 'postgres' | 'log'>): void {
  for (const name of NAMES) register.removeSingleMetric(name);
  const labelNames = ['partition'] as const;
  if (log instanceof EmbeddedLog) {
    new Gauge({
      name: UNACCOUNTED,
      help: 'Accepted events that have neither become something nor wait in the log, by partition: lost where above 0',
      labelNames,
      async collect() {
        // While Postgres is unavailable the metric has no value, because 0 would mean that there is no fault.
        const accounts = (await runWithTimeout(() => logAccounts(postgres))) ?? [];
        this.reset();
        for (const account of accounts) this.set({ partition: account.partition }, countUnaccountedEvents(account));
      },
    });
  }
  new Gauge({
    name: UNSETTLED,
    help: 'Records of the log that the stores are said to hold and that the ledger does not know, by partition',
    labelNames,
    async collect() {
      const partitions = (await runWithTimeout(() => countUnaccountedRecords(postgres))) ?? [];
      this.reset();
      for (const { partition, records } of partitions) this.set({ partition }, records);
    },
  });
}
