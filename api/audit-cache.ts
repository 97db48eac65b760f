/**
 * An interface that is a process of its own keeps histories of grants, which no other process can see: it compares some of them itself, as often as the scheduler
 * audits (docs/decisions/0012-entitlement-grants.md). What it finds it writes down, and the scheduler tells it.
 */
import { sampleRunning } from '../actions/audit/running.ts';
import type { Services } from './services.ts';

const EVERY_MS = 300_000;

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
