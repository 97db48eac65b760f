/**
 * Audit of the usage of running periods that is kept in memory (docs/decisions/0022-running-charges.md): each line says what the stores say
 * of its customer, meter and period, and each charge what a preview says. The process that keeps it compares some of it all the time, and
 * writes down what it finds; `npm run audit` is another process, and tells that. What differs is forgotten, so the next answer is exact.
 */
import { setTimeout } from 'node:timers/promises';
import { type RunningCompared, recordRunningAudit, runningAudits } from '../../storage/audit/running.ts';
import type { KeptAnswer } from '../../storage/kept/kept-answer.ts';
import { keptIn } from '../../storage/kept/kept-answers.ts';
import { nextLook } from '../../storage/kept/look.ts';
import { newId } from '../../storage/new-id.ts';
import type { Stores } from '../../storage/stores.ts';
import { askUsage } from '../../storage/usage/usage.ts';
import { chargesDiffer } from '../wallets/real-time-balance.ts';
import type { Found } from './findings.ts';

const ANSWERS = 50;
/** What arrives while two are compared is no difference: they are compared again. */
const TRIES = 5;
const PAUSE_MS = 200;

/** What was written down. */
export async function auditRunning({ postgres }: Pick<Stores, 'postgres'>, found: Found) {
  const { differences, ...looked } = await runningAudits(postgres);
  for (const what of differences) found(findingOf(what));
  return looked;
}

/** Of some that are kept, and of none where nothing is. */
export async function sampleRunning(
  stores: Stores,
  { chance, now }: { chance: () => number; now: Date },
  found: Found,
): Promise<void> {
  if (stores.usage_memory === undefined) return;
  const kept = keptIn(stores.usage_memory);
  const some = kept.some(ANSWERS, chance);
  if (some.length === 0) return;
  const differences: string[] = [];
  let lines = 0;
  for (const answer of some) {
    lines += answer.lines.length;
    const different = [
      ...(await linesThatDiffer(stores, answer)),
      ...((await chargesDiffer(stores, answer, now)) ?? []),
    ];
    if (different.length > 0) kept.drop(answer);
    differences.push(...different);
  }
  for (const what of differences) found(findingOf(what));
  const compared: RunningCompared = { answers: some.length, lines, differences };
  await recordRunningAudit(stores.postgres, { id: newId('run'), ...compared });
}

function findingOf(what: string) {
  return { kind: 'running_differs', count: 1, what } as const;
}

async function linesThatDiffer(stores: Stores, answer: KeptAnswer): Promise<string[]> {
  const different: string[] = [];
  for (const one of answer.lines) different.push(...(await lineDiffers(stores, answer, one)));
  return different;
}

type OfLine = KeptAnswer['lines'][number];

async function lineDiffers(
  stores: Stores,
  answer: KeptAnswer,
  { meter_id, customer, line }: OfLine,
): Promise<string[]> {
  let what = '';
  for (let tries = 0; tries < TRIES; tries++) {
    if (tries > 0) await setTimeout(PAUSE_MS);
    stores.usage_memory!.follow((await nextLook(stores.postgres)).progress);
    const { changes } = line;
    const kept = `${line.answer.quantity.toFixed()} of ${line.answer.event_count} events`;
    const { start_us, end_us } = line;
    const asked = { meter: { id: meter_id }, external_customer_ids: [customer], start_us, end_us };
    const { usage } = await askUsage({ ...stores, usage_memory: undefined }, answer.scope, asked);
    stores.usage_memory!.follow((await nextLook(stores.postgres)).progress);
    if (line.is_lost) return [];
    const { value, event_count } = usage[0]!.total;
    const stored = `${value.toFixed()} of ${event_count} events`;
    if (stored === kept) return [];
    what = `${answer.scope.tenant_id} ${answer.scope.environment_id} ${meter_id} ${JSON.stringify(customer)}: ${kept} in memory, ${stored} in the stores`;
    if (line.changes !== changes) what = '';
  }
  return what === '' ? [] : [what];
}
