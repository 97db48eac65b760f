/**
 * An API process caches histories of grants that no other process can see. So it audits a sample of them itself, at the interval of the
 * scheduler's audit (docs/decisions/0012-entitlement-grants.md). It writes findings to the database, and the scheduler reports them.
 */
import { sampleRunning } from '../../actions/operations/audit/running.ts';
import { MINUTE_MS } from '../../core/foundation/time/durations.ts';
import type { Services } from '../http/services.ts';

const EVERY_MS = 5 * MINUTE_MS;

export function startCacheAudit(services: Services, every_ms = EVERY_MS): { close(): Promise<void> } {
  let running = Promise.resolve();
  const sample = async () => {
    try {
      await sampleRunning(services, { chance: Math.random, now: services.clock() }, null);
    } catch (error) {
      services.logger.error({ err: error }, 'what is kept in memory could not be audited');
    }
  };
  const timer = setInterval(() => {
    running = running.then(sample);
  }, every_ms).unref();
  return {
    close() {
      clearInterval(timer);
      return running;
    },
  };
}
