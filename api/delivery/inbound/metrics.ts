/** Prometheus metrics of webhooks of providers. No label names a tenant. */
import { Counter, register } from 'prom-client';
import { FarthingError } from '../../../core/foundation/error.ts';

/** Results of a webhook. `failed` means that it could not be stored, so the provider sends it again. */
const OUTCOMES = ['stored', 'bad_signature', 'bad_body', 'failed'] as const;

const webhooks = new Counter({
  name: 'farthing_provider_webhooks_total',
  help: 'Webhooks of providers with a signature, by provider and by what became of them',
  labelNames: ['provider', 'outcome'] as const,
  registers: [register],
});

export const inboundMetrics = {
  /** Each series starts at 0, because a rate sees no increase in a series that begins with its first refusal. */
  known(provider: string): void {
    for (const outcome of OUTCOMES) webhooks.inc({ provider, outcome }, 0);
  },
  /** Counts the outcome of the work. */
  async measure<Result>(provider: string, work: () => Promise<Result>): Promise<Result> {
    try {
      const result = await work();
      webhooks.inc({ provider, outcome: 'stored' });
      return result;
    } catch (error) {
      webhooks.inc({ provider, outcome: nameOutcome(error) });
      throw error;
    }
  },
};

function nameOutcome(error: unknown): (typeof OUTCOMES)[number] {
  if (!(error instanceof FarthingError)) return 'failed';
  if (error.code === 'permission_denied') return 'bad_signature';
  return error.code === 'validation_error' ? 'bad_body' : 'failed';
}
