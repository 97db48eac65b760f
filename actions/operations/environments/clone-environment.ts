/**
 * Copies the catalogue of one environment into another: published features, plans and add-ons with their parts, coupons, tax rates, cost
 * sheets and import mappings (docs/rules/records.md, "Copying an environment"), as a workflow. Each of these is copied in its own
 * transaction, together with the pairs of ids, so an aborted run continues where it stopped.
 */
import { requireSuperAdmin } from '../../../core/foundation/access/role.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { toAdvancingError } from '../../../core/platform/test-clock/record.ts';
import { isRetryable, toWorkflowError } from '../../../core/platform/workflow/record.ts';
import { runInEnvironment } from '../../../storage/foundation/request-context.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';
import { WorkflowRunModel } from '../../../storage/models/foundation/workflow-run.ts';
import { EnvironmentCopyModel } from '../../../storage/models/operations/environment-copy.ts';
import { loadNow } from '../../../storage/models/schedule/environment-clock.ts';
import { TestClockModel } from '../../../storage/models/schedule/test-clock.ts';
import {
  addRun,
  completeRun,
  lockRun,
  type RunAttempt,
  type RunReference,
  storeResult,
  tryRun,
} from '../../foundation/workflows/run.ts';
import { addEnvironment } from './add-environment.ts';
import { COPIED, type Copyable, ROOTS } from './copied.ts';
import { copyRoot, type RootOutcome, type SkippedRecord } from './copy-root.ts';

export const CLONE_JOB = { task: 'clone-environment', time_sliced: true } as const;

type CloneRequester = { readonly tenant_id: string; readonly roles: readonly string[] };
type CloneTarget =
  | { readonly target_environment_id: string }
  | { readonly name: string; readonly type: EnvironmentModel['type'] };
type CloneEnvironmentInput = {
  readonly source_environment_id: string;
  readonly target: CloneTarget;
  readonly principal: CloneRequester;
  readonly author: Author;
};

/** Enqueues a clone. The run belongs to the environment of the request, so that it can be polled there. */
export async function enqueueClone(
  { postgres }: Pick<Stores, 'postgres'>,
  requested_in: string,
  { source_environment_id, target, principal, author }: CloneEnvironmentInput,
): Promise<{ run: WorkflowRunModel; target_environment_id: string }> {
  requireSuperAdmin(principal, 'clone environments');
  const { tenant_id } = principal;
  return postgres.transaction(async (transaction) => {
    await EnvironmentModel.fetch(tenant_id, source_environment_id, { database: transaction });
    const { id: target_environment_id } = await loadCloneTarget(transaction, tenant_id, { target, author });
    await checkClockHalted({ tenant_id, environment_id: target_environment_id }, transaction);
    if (target_environment_id === source_environment_id)
      throw invalid('target_environment_id', 'must be another environment than the one that is cloned');
    const scope = { tenant_id, environment_id: requested_in || source_environment_id };
    const result = { ...NOTHING_YET, target_environment_id };
    const input = { scope, source_environment_id, author, result };
    return {
      run: await runInEnvironment(scope.environment_id, () => addClone(transaction, input)),
      target_environment_id,
    };
  });
}

/**
 * Refuses to clone while a test clock advances, because an advance must be the only writer. The lock prevents an advance from starting
 * before this request commits.
 */
async function checkClockHalted(scope: Scope, transaction: Transaction): Promise<void> {
  const [clock] = await runInEnvironment(scope.environment_id, async () =>
    TestClockModel.in(scope, transaction).limit(1).forShare(),
  );
  if (clock?.test_clock_status === 'advancing') throw toAdvancingError(clock);
}

type NewClone = Pick<CloneEnvironmentInput, 'source_environment_id' | 'author'> & {
  readonly scope: Scope;
  readonly result: CloneResult;
};

async function addClone(
  transaction: Transaction,
  { scope, source_environment_id, author, result }: NewClone,
): Promise<WorkflowRunModel> {
  const run = await addRun(transaction, scope, {
    job: CLONE_JOB,
    workflow_type: 'EnvironmentCloneWorkflow',
    task_queue: 'environment',
    entity: 'environment',
    entity_id: source_environment_id,
    author,
  });
  await storeResult(transaction, { ...scope, workflow_id: run.id }, result);
  return run;
}

function loadCloneTarget(
  transaction: Transaction,
  tenant_id: string,
  { target, author }: Pick<CloneEnvironmentInput, 'target' | 'author'>,
): Promise<EnvironmentModel> {
  if ('target_environment_id' in target)
    return EnvironmentModel.fetch(tenant_id, target.target_environment_id, { database: transaction });
  return addEnvironment(transaction, tenant_id, { ...target, author });
}

/** Result of the run: created and existing records, and skipped records with reasons. */
type CloneResult = {
  readonly target_environment_id: string;
  /** Number of copied records by kind. */
  readonly copied: Record<string, number>;
  readonly ids: readonly { readonly entity: string; readonly source_id: string; readonly target_id: string }[];
  /** Number of roots, such as features and plans, that an earlier run copied. */
  readonly copied_before: number;
  /** Records that were not copied because their key is taken, their copy was archived, or a record that they replace was copied. */
  readonly skipped: readonly SkippedRecord[];
  readonly failed: readonly SkippedRecord[];
};

const NOTHING_YET = { copied: {}, ids: [], copied_before: 0, skipped: [], failed: [] };

export function tryClone(stores: Stores, place: RunReference, attempt: RunAttempt): Promise<'completed' | 'failed'> {
  return tryRun(stores, place, attempt, () => runClone(stores, place, attempt));
}

async function runClone({ postgres }: Stores, place: RunReference, { clock, signal }: RunAttempt) {
  const { tenant_id, workflow_id } = place;
  const known = await WorkflowRunModel.fetch(place, workflow_id, { database: postgres });
  const { target_environment_id } = known.result as CloneResult;
  const target = { tenant_id, environment_id: target_environment_id };
  const where = { source: { tenant_id, environment_id: known.entity_id }, target, workflow_id, stand_ins: new Map() };
  const counts: CloneCounts = { copied_before: 0, skipped: [], failed: [] };
  // Copies start at the time of the copy, by the target environment's clock.
  const instant = await loadNow(postgres, target, clock);
  const source_now = (await loadNow(postgres, where.source, clock))();
  for (const entity of ROOTS)
    for (const record of await COPIED[entity]!.published!(where.source, postgres)) {
      signal.throwIfAborted();
      const author = { user_id: known.created_by, now: instant() };
      await countCopy(counts, { entity, record }, () =>
        postgres.transaction((database) => copyRoot({ ...where, source_now, author, database }, entity, record)),
      );
    }
  const ids = (await EnvironmentCopyModel.ofRun(target, workflow_id, postgres)).map(
    ({ entity, source_id, target_id }) => ({ entity, source_id, target_id }),
  );
  const result: CloneResult = { target_environment_id, copied: countBy(ids), ids, ...counts };
  return postgres.transaction(async (transaction) => {
    const { ended } = await lockRun(transaction, place);
    return ended ?? completeRun(transaction, place, { result, now: clock() });
  });
}

type CloneCounts = { copied_before: number; readonly skipped: SkippedRecord[]; readonly failed: SkippedRecord[] };

/** Counts a copy. A violated rule fails this record alone; a temporary error is thrown for another attempt of the run. */
async function countCopy(
  counts: CloneCounts,
  { entity, record }: { entity: string; record: Copyable },
  copy: () => Promise<RootOutcome>,
): Promise<void> {
  const { id } = record;
  const name = record.name ?? '';
  try {
    const outcome = await copy();
    if (outcome.kind === 'copied before') counts.copied_before++;
    if (outcome.kind === 'skipped') counts.skipped.push({ entity, id, name, reason: outcome.reason });
    else counts.skipped.push(...outcome.left_out);
  } catch (error) {
    if (isRetryable(error)) throw error;
    counts.failed.push({ entity, id, name, reason: toWorkflowError(error).message });
  }
}

function countBy(ids: CloneResult['ids']): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { entity } of ids) counts[entity] = (counts[entity] ?? 0) + 1;
  return counts;
}
