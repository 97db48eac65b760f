/** Requests to a test clock: start an advance, which a workflow performs, and stop it. */
import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { checkAdvance, NO_PROGRESS } from '../../../core/platform/test-clock/record.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { TestClockModel } from '../../../storage/models/schedule/test-clock.ts';
import { findRunningWorkflow } from '../../../storage/queue/due-exports.ts';
import { addRun } from '../../foundation/workflows/run.ts';

export const ADVANCE_JOB = { task: 'advance-test-clock', time_sliced: true } as const;

export async function enqueueAdvance(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, frozen_time, author }: { id: string; frozen_time: string; author: Author },
): Promise<TestClockModel> {
  return postgres.transaction(async (transaction) => {
    const clock = await TestClockModel.fetch(scope, id, { database: transaction, lock: true });
    checkAdvance(clock, toInstant(frozen_time));
    await checkNothingRuns(scope, transaction);
    const { id: workflow_id, run_id } = await addRun(transaction, scope, {
      job: ADVANCE_JOB,
      workflow_type: 'TestClockWorkflow',
      task_queue: 'test_clock',
      entity: 'test_clock',
      entity_id: id,
      author,
    });
    const advancing = {
      test_clock_status: 'advancing' as const,
      target_time: frozen_time,
      advanced_from: clock.frozen_time,
      advanced_at: author.now.toISOString(),
      workflow_id,
      run_id,
      progress: NO_PROGRESS,
      failure: null,
      worker: null,
      is_at_failure: isAtFailure(clock),
    };
    return TestClockModel.change(clock, advancing, { by: author, database: transaction });
  });
}

/**
 * Whether the clock failed at its current instant, which is then repeated. A clock that failed before it advanced at all has no instant to
 * repeat.
 */
function isAtFailure({ test_clock_status, frozen_time, advanced_from, is_at_failure }: TestClockModel): boolean {
  return test_clock_status === 'failed' && (is_at_failure || toInstant(frozen_time) !== toInstant(advanced_from));
}

/**
 * Throws if a workflow is running. Work that was requested before the advance must end before it, so that all its writes have the instant
 * of the request.
 */
export async function checkNothingRuns(scope: Scope, database: Transaction): Promise<void> {
  const run = await findRunningWorkflow(database, scope);
  if (!run) return;
  const details = { workflow_id: run.id, workflow_type: run.workflow_type };
  throw new FarthingError('version_conflict', `workflow ${run.id} is running: try again when it has ended`, {
    details,
  });
}

/**
 * Stops a test clock. The workflow checks the status before each instant, and ends when the clock is stopped. A clock that is not advancing
 * is left unchanged.
 */
export async function stopTestClock(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<TestClockModel> {
  return postgres.transaction(async (transaction) => {
    const clock = await TestClockModel.fetch(scope, id, { database: transaction, lock: true });
    if (clock.test_clock_status !== 'advancing') return clock;
    const stopped = { test_clock_status: 'ready' as const, target_time: null };
    return TestClockModel.change(clock, stopped, { by: author, database: transaction });
  });
}
