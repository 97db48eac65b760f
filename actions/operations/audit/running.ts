/**
 * Audit of the usage cache for running periods (docs/decisions/0007-cached-answers.md, docs/decisions/0012-entitlement-grants.md).
 * Each period equals the stores' usage of its customer and meter. Each charge equals a preview, and each history of grants
 * equals a recomputation from raw events. The process that owns the cache compares samples continuously and records its findings;
 * `npm run audit`, another process, reports them. A differing entry is invalidated, so the next answer is exact.
 */
import { setTimeout } from 'node:timers/promises';
import { loadRunningAuditSums, recordRunningAudit, takeUnreportedDifferences } from '../../../storage/audit/running.ts';
import type { CacheEntry } from '../../../storage/cache/cache-entry.ts';
import { getCache } from '../../../storage/cache/cached-answers.ts';
import {
  deleteHistory,
  findHistoryDifference,
  type NamedHistory,
  sampleHistories,
} from '../../../storage/cache/cached-histories.ts';
import { readChanges } from '../../../storage/cache/change-feed.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { compareCachedCharges } from '../../lifecycle/wallets/real-time-balance.ts';
import type { OnFinding } from './findings.ts';

const ANSWERS = 50;
/** Maximum number of audited histories and their events, because all their raw events are read. */
const HISTORIES = { count: 20, events: 200_000 };
/** Number of tries of a comparison, which is repeated if data arrive during it. */
const TRIES = 5;
const PAUSE_MS = 200;

export async function auditRunning({ postgres }: Pick<Stores, 'postgres'>, found: OnFinding) {
  const { differences, ...counts } = await loadRunningAuditSums(postgres);
  for (const what of differences) found(toRunningFinding(what));
  return counts;
}

type SampleInput = { readonly chance: () => number; readonly now: Date };

/** Compares a sample of cached entries, if there are any. `found` reports the findings; null means that another process reports them. */
export async function sampleRunning(stores: Stores, sampling: SampleInput, found: OnFinding | null): Promise<void> {
  const answers = await compareAnswers(stores, sampling);
  const histories = await compareHistories(stores, sampling);
  if (answers.answers + histories.histories === 0) return;
  const differences = [...answers.differences, ...histories.differences];
  const compared = { ...answers, ...histories, differences, is_told: found !== null };
  await recordRunningAudit(stores.postgres, { id: newId('run'), ...compared });
  for (const what of differences) found?.(toRunningFinding(what));
}

/** Reports the findings of processes that cannot report themselves. */
export async function reportOtherProcesses({ postgres }: Pick<Stores, 'postgres'>, found: OnFinding): Promise<void> {
  for (const what of await takeUnreportedDifferences(postgres)) found(toRunningFinding(what));
}

async function compareAnswers(stores: Stores, { chance, now }: SampleInput) {
  const differences: string[] = [];
  if (stores.usage_cache === undefined) return { answers: 0, lines: 0, differences };
  const cached = getCache(stores.usage_cache);
  const some = cached.some(ANSWERS, chance);
  let lines = 0;
  for (const answer of some) {
    lines += answer.periods.length;
    const different = [
      ...(await listPeriodDifferences(stores, answer)),
      ...((await compareCachedCharges(stores, answer, now)) ?? []),
    ];
    if (different.length > 0) cached.drop(answer);
    differences.push(...different);
  }
  return { answers: some.length, lines, differences };
}

async function compareHistories(stores: Stores, { chance, now }: SampleInput) {
  const some = sampleHistories(stores, { ...HISTORIES, chance });
  const differences: string[] = [];
  for (const history of some) {
    const what = await confirmHistoryDiffers(stores, history, now);
    if (what === null) continue;
    deleteHistory(stores, history);
    const { scope, query } = history.history;
    const { meter, external_customer_ids } = query;
    differences.push(
      `grants of ${scope.tenant_id} ${scope.environment_id} ${meter.id} ${JSON.stringify(external_customer_ids)}: ${what}`,
    );
  }
  return { histories: some.length, differences };
}

async function confirmHistoryDiffers(stores: Stores, history: NamedHistory, now: Date): Promise<string | null> {
  let what: string | null = null;
  for (let tries = 0; tries < TRIES; tries++) {
    if (tries > 0) await setTimeout(PAUSE_MS);
    what = await findHistoryDifference(stores, history, now.getTime());
    if (what === null) return null;
  }
  return what;
}

function toRunningFinding(what: string) {
  return { kind: 'running_differs', count: 1, what } as const;
}

async function listPeriodDifferences(stores: Stores, answer: CacheEntry): Promise<string[]> {
  const different: string[] = [];
  for (const one of answer.periods) different.push(...(await confirmPeriodDiffers(stores, answer, one)));
  return different;
}

type CachedUsagePeriod = CacheEntry['periods'][number];

async function confirmPeriodDiffers(
  stores: Stores,
  answer: CacheEntry,
  { meter_id, customer, period }: CachedUsagePeriod,
): Promise<string[]> {
  let what = '';
  for (let tries = 0; tries < TRIES; tries++) {
    if (tries > 0) await setTimeout(PAUSE_MS);
    stores.usage_cache!.follow((await readChanges(stores.postgres)).progress);
    const { changes } = period;
    const cached = `${period.answer.quantity.toFixed()} of ${period.answer.event_count} events`;
    const { start_us, end_us } = period;
    const query = { meter: { id: meter_id }, external_customer_ids: [customer], start_us, end_us };
    const { usage } = await readUsageReport({ ...stores, usage_cache: undefined }, answer.scope, query);
    stores.usage_cache!.follow((await readChanges(stores.postgres)).progress);
    if (period.is_lost) return [];
    const { value, event_count } = usage[0]!.total;
    const stored = `${value.toFixed()} of ${event_count} events`;
    if (stored === cached) return [];
    what = `${answer.scope.tenant_id} ${answer.scope.environment_id} ${meter_id} ${JSON.stringify(customer)}: ${cached} in memory, ${stored} in the stores`;
    if (period.changes !== changes) what = '';
  }
  return what === '' ? [] : [what];
}
