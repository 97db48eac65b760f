/**
 * The clock of an environment: the instant that it is there, which moves only when it is told to (docs/rules/clock.md). What is
 * due by then happens on the way, in the order of its instants.
 */
import { z } from 'zod';
import { FarthingError, invalid, notAllowed } from '../error.ts';
import { baseFields, keyText, metadata, orNull, timestampText } from '../record.ts';
import { formatMs, type Milliseconds, toInstant } from '../time/instant.ts';
import { WorkflowError } from '../workflow/record.ts';

export const TEST_CLOCK_STATUSES = ['ready', 'advancing', 'failed'] as const;

const FIRST_INSTANT = Date.UTC(2000, 0, 1);
const LAST_INSTANT = Date.UTC(2200, 0, 1);

export const frozenTime = timestampText.refine(
  (text) => {
    const instant = Date.parse(text);
    return Number.isNaN(instant) || (instant >= FIRST_INSTANT && instant <= LAST_INSTANT);
  },
  { error: 'must lie between the years 2000 and 2200' },
);

/** What an advance has done so far, by the kind of what was due. */
export const clockProgress = z.object({
  instants: z.int().meta({ description: 'At how many instants something was due.' }),
  done: z
    .record(z.string(), z.int())
    .meta({ description: 'What was done, such as `billed` periods and `finalized` invoices, each with its number.' }),
});
export type ClockProgress = z.output<typeof clockProgress>;

export const NO_PROGRESS: ClockProgress = { instants: 0, done: {} };

export const testClockShape = z.object({
  id: z.string(),
  name: orNull(keyText).unwrap().meta({ description: 'What people call it.' }),
  test_clock_status: z.enum(TEST_CLOCK_STATUSES).meta({
    description:
      '`advancing` while it moves: nothing else is written in the environment then. `failed` when it stands before its target because something could not be done; `failure` says what.',
  }),
  frozen_time: timestampText.meta({ description: 'The instant that it is in the environment.' }),
  advanced_from: timestampText.meta({ description: 'Where it stood before the last advance.' }),
  advanced_at: timestampText.meta({ description: "By the machine's clock: when the last advance was asked for." }),
  target_time: timestampText.nullable().meta({ description: 'Where it advances to; null while it does not.' }),
  workflow_id: z.string().nullable().meta({ description: 'The workflow of the last advance; null before the first.' }),
  run_id: z.string().nullable().meta({ description: 'The run of that workflow.' }),
  progress: clockProgress.meta({ description: 'What the last advance has done so far.' }),
  failure: WorkflowError.nullable().meta({
    description: 'Why the last advance could not go on; null unless `failed`.',
  }),
  metadata: metadata.unwrap(),
  ...baseFields,
});
export type TestClock = z.output<typeof testClockShape>;

/** Invoices of production are owed, and no test. */
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

/** Whoever writes during an advance would do so at an instant that is gone when it is answered. */
export function toAdvancingError(clock: Pick<TestClock, 'id' | 'target_time'>): FarthingError {
  const { id, target_time } = clock;
  return new FarthingError('version_conflict', 'the test clock of this environment is advancing: try again later', {
    details: { test_clock_id: id, target_time },
  });
}

/** Of a request that came before the clock was made. */
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
