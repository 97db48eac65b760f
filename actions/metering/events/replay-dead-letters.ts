/**
 * Sends dead letters through the log again. Their bytes are validated again, and a valid one becomes an event under the id that its
 * producer received. Each is appended before it is marked as replayed: after a crash in between it is appended again, and the pipeline
 * drops the repetition by its id.
 */

import { parseJson } from '../../../core/foundation/json/parse.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toUs } from '../../../core/foundation/time/instant.ts';
import { findEventFault } from '../../../core/metering/event/accept.ts';
import { toPartition } from '../../../core/metering/event/identity.ts';
import { findDeadLetters, recordReplay, type StoredDeadLetter } from '../../../storage/events/dead-letters.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { ensureCorrectionNumbers } from '../../../storage/progress/attempts.ts';
import {
  addCorrection,
  computeEventShard,
  listCorrections,
  lockEvent,
  PIPELINE,
} from '../../../storage/progress/corrections.ts';

type ReplayVerdict = {
  readonly id: string;
  readonly event_id: string | null;
  readonly verdict: 'replayed' | 'refused' | 'replayed_before' | 'unknown';
  readonly message: string | null;
};

type ReplayInput = {
  /** Null selects the newest dead letters that were not replayed, at most `REPLAYED_AT_ONCE_MAX`. */
  readonly ids: readonly string[] | null;
  readonly user_id: string;
  readonly now: Date;
};

export const REPLAYED_AT_ONCE_MAX = 1000;

export async function replayDeadLetters(stores: Stores, scope: Scope, input: ReplayInput): Promise<ReplayVerdict[]> {
  const letters =
    input.ids === null ? await listUnreplayed(stores, scope) : await findNamedLetters(stores, scope, input.ids);
  await ensureCorrectionNumbers(stores);
  const verdicts: ReplayVerdict[] = [];
  for (const letter of letters) verdicts.push(await replay(stores, scope, { letter, input }));
  const known = new Set(verdicts.map(({ id }) => id));
  for (const id of input.ids ?? []) {
    if (!known.has(id))
      verdicts.push({ id, event_id: null, verdict: 'unknown', message: 'there is no such dead letter' });
  }
  return verdicts;
}

function findNamedLetters(stores: Stores, scope: Scope, ids: readonly string[]): Promise<StoredDeadLetter[]> {
  return findDeadLetters(stores, scope, { ids, limit: ids.length, offset: 0 });
}

async function listUnreplayed(stores: Stores, scope: Scope): Promise<StoredDeadLetter[]> {
  const found: StoredDeadLetter[] = [];
  for (let offset = 0; found.length < REPLAYED_AT_ONCE_MAX; offset += REPLAYED_AT_ONCE_MAX) {
    const page = await findDeadLetters(stores, scope, { ids: null, limit: REPLAYED_AT_ONCE_MAX, offset });
    found.push(...page.filter((letter) => letter.replayed_at === null));
    if (page.length < REPLAYED_AT_ONCE_MAX) break;
  }
  return found.slice(0, REPLAYED_AT_ONCE_MAX);
}

async function replay(
  stores: Stores,
  scope: Scope,
  { letter, input }: { letter: StoredDeadLetter; input: ReplayInput },
): Promise<ReplayVerdict> {
  const { id, body } = letter;
  if (letter.replayed_at !== null) {
    return { id, event_id: letter.event_id || null, verdict: 'replayed_before', message: `at ${letter.replayed_at}` };
  }
  const fault = findFault(body);
  if (fault) return { id, event_id: letter.event_id || null, verdict: 'refused', message: fault };
  const sent_id = (parseJson(body) as { event_id?: string | null }).event_id?.trim() ? letter.event_id : '';
  const event_id = sent_id || letter.event_id || newId('event', input.now.getTime());
  if (!(await restoreEvent(stores, scope, { event_id, body, input })))
    await appendLetter(stores, scope, { event_id, sent_id, body, input });
  await recordReplay(stores.postgres, scope, { id, event_id, user_id: input.user_id, now: input.now });
  return { id, event_id, verdict: 'replayed', message: null };
}

/**
 * Restores an event that the pipeline voided after its raw row was written, by a correction with the content of the dead letter. Returns
 * false for any other event.
 */
async function restoreEvent(
  { postgres }: Stores,
  scope: Scope,
  { event_id, body, input }: { event_id: string; body: string; input: ReplayInput },
): Promise<boolean> {
  return postgres.transaction(async (transaction) => {
    await lockEvent(transaction, scope, event_id);
    const last = (await listCorrections(transaction, scope, event_id)).at(-1);
    if (last?.action !== 'void' || last.requested_by !== PIPELINE || last.state === 'unknown_event') return false;
    await addCorrection(transaction, scope, {
      event_id,
      action: 'replace',
      replacement: body,
      reason: 'replay of a dead letter',
      requested_by: input.user_id,
      requested_at: input.now,
    });
    return true;
  });
}

async function appendLetter(
  stores: Stores,
  scope: Scope,
  { event_id, sent_id, body, input }: { event_id: string; sent_id: string; body: string; input: ReplayInput },
): Promise<void> {
  await stores.log.append([
    {
      ...{ tenant_id: scope.tenant_id, environment_id: scope.environment_id },
      partition: toPartition(computeEventShard(scope, event_id), stores.log.partition_count),
      kind: 'events',
      received_at_us: toUs(input.now.getTime()),
      generated_ids: sent_id ? null : { 0: event_id },
      event_count: 1,
      body: Buffer.from(`[${body}]`),
    },
  ]);
}

function findFault(body: string): string | undefined {
  let event: unknown;
  try {
    event = parseJson(body);
  } catch {
    return 'is not JSON';
  }
  const fault = findEventFault(event);
  return fault && (fault.field === '' ? fault.why : `${fault.field}: ${fault.why}`);
}
