/**
 * The clock of an environment: its current instant, which moves only on request (docs/rules/clock.md). Work that becomes due runs during
 * the advance, in the order of its instants.
 */
import { z } from 'zod';
import { FarthingError, invalid, notAllowed } from '../../foundation/error.ts';
import { baseFields, keyText, metadata, orNull, timestampText } from '../../foundation/record.ts';
import { formatMs, type Milliseconds, toInstant } from '../../foundation/time/instant.ts';
import { WorkflowError } from '../workflow/record.ts';

const TEST_CLOCK_STATUSES = ['ready', 'advancing', 'failed'] as const;

const FIRST_INSTANT = Date.UTC(2000, 0, 1);
const LAST_INSTANT = Date.UTC(2200, 0, 1);

export const frozenTime = timestampText.refine(
  (text) => {
    const instant = Date.parse(text);
    return Number.isNaN(instant) || (instant >= FIRST_INSTANT && instant <= LAST_INSTANT);
  },
  { error: 'must lie between the years 2000 and 2200' },
);

/** Progress of an advance, by kind of due work. */
const clockProgress = z.object({
  instants: z.int().meta({ description: 'Number of instants at which work was due.' }),
  done: z.record(z.string(), z.int()).meta({
    description: 'Number of completed operations by kind, such as `billed` periods and `finalized` invoices.',
  }),
});
export type ClockProgress = z.output<typeof clockProgress>;

export const NO_PROGRESS: ClockProgress = { instants: 0, done: {} };

export const testClockShape = z.object({
  id: z.string(),
  name: orNull(keyText).unwrap().meta({ description: 'Display name of the clock.' }),
  test_clock_status: z.enum(TEST_CLOCK_STATUSES).meta({
    description:
      'Status of the clock. `advancing`: it is moving, and other writes in the environment are refused. `failed`: it halted before its target because an operation failed; `failure` has the reason.',
  }),
  frozen_time: timestampText.meta({ description: 'Current instant of the environment.' }),
  advanced_from: timestampText.meta({ description: 'Instant before the last advance.' }),
  advanced_at: timestampText.meta({
    description: "Time at which the last advance was requested, by the machine's clock.",
  }),
  target_time: timestampText.nullable().meta({ description: 'Target of the current advance; null if there is none.' }),
  workflow_id: z.string().nullable().meta({ description: 'Workflow of the last advance; null before the first.' }),
  run_id: z.string().nullable().meta({ description: 'Run of the last advance; null before the first.' }),
  progress: clockProgress.meta({ description: 'Progress of the last advance.' }),
  failure: WorkflowError.nullable().meta({
    description: 'Reason why the last advance halted; null unless the status is `failed`.',
  }),
  metadata: metadata.unwrap(),
  ...baseFields,
});
export type TestClock = z.output<typeof testClockShape>;

/** Customers owe the invoices of a production environment, so its time must be real. */
export function checkCanHaveClock(environment: { type: string }): void {
  if (environment.type === 'production')
    throw notAllowed('a production environment cannot have a test clock', { field: 'environment_id' });
}

export function checkAdvance(
  clock: Pick<TestClock, 'id' | 'test_clock_status' | 'frozen_time'>,
  target: Milliseconds,
): void {
  const { id, test_clock_status, frozen_time } = clock;
  if (test_clock_status === 'advancing')
    throw notAllowed('the clock is advancing: wait until it is ready, or stop it', { id });
  if (target < toInstant(frozen_time))
    throw invalid('frozen_time', `a clock does not go back: it is ${formatMs(toInstant(frozen_time))} already`);
}

/** Error of a write during an advance. Such a write would have an instant that is past when its response is sent. */
export function toAdvancingError(clock: Pick<TestClock, 'id' | 'target_time'>): FarthingError {
  const { id, target_time } = clock;
  return new FarthingError('version_conflict', 'the test clock of this environment is advancing: try again later', {
    details: { test_clock_id: id, target_time },
  });
}

/** Error of a request that arrived before the clock was created. */
export function toClockCreatedError({ id }: Pick<TestClock, 'id'>): FarthingError {
  return new FarthingError('version_conflict', 'this environment has got a test clock meanwhile: try again', {
    details: { test_clock_id: id },
  });
}

export function addProgress(progress: ClockProgress, done: Readonly<Record<string, number>>): ClockProgress {
  const sum = { ...progress.done };
  for (const [what, count] of Object.entries(done)) if (count > 0) sum[what] = (sum[what] ?? 0) + count;
  return { ...progress, done: sum };
}
