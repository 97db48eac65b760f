/**
 * Measures how one tenant affects another. The first overloads the service in several ways, for `--seconds=10` each. The second sends
 * single events and queries its usage; its times are compared with those on a quiet service.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Caller,
  CORRECTIONS,
  Disturber,
  type Felt,
  makeTenant,
  Neighbour,
  WAYS,
} from '../test/support/neighbours.ts';
import { startService } from './processes.ts';
import { claim, fixed, flag, quantile, say } from './report.ts';

/** Added to twice the quiet time, because the stores, the service and the load generators share the two cores of the machine. */
const NOISE_MS = 250;

export async function run(): Promise<void> {
  const for_ms = flag('seconds', 8) * 1000;
  const dir = mkdtempSync(join(tmpdir(), 'farthing-neighbour-'));
  const service = await startService('whole', {}, dir);
  const noisy: Caller = service;
  const disturber = new Disturber(noisy);
  try {
    const neighbour = new Neighbour(await makeTenant(dir, service.url));
    await neighbour.begin();
    const quiet = await neighbour.feel(2 * for_ms);
    say(`  quiet: ${told(quiet)}`);
    for (const way of [...WAYS, CORRECTIONS]) {
      const { answer: felt, statuses } = await disturber.during(way, () => neighbour.feel(for_ms));
      const isMet =
        p99(felt.accepts_ms) <= 2 * p99(quiet.accepts_ms) + NOISE_MS &&
        p99(felt.freshness_ms) <= 2 * p99(quiet.freshness_ms) + NOISE_MS;
      claim(way.name, `${told(felt)}; ${JSON.stringify(statuses)}`, `twice the quiet + ${NOISE_MS} ms`, isMet);
      await service.waitUntilMerged();
    }
  } finally {
    disturber.stop();
    await service.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

function told({ accepts_ms, freshness_ms }: Felt): string {
  const of = (all: readonly number[]) => `p50 ${fixed(quantile(all, 0.5), 0)} p99 ${fixed(p99(all), 0)} ms`;
  return `accept ${of(accepts_ms)}, fresh ${of(freshness_ms)} (${accepts_ms.length})`;
}

function p99(all: readonly number[]): number {
  return quantile(all, 0.99);
}
