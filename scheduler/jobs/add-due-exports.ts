/** Makes tasks of the exports whose time is over (docs/rules/exports.md, "Scheduled exports"). */
import { addDueExports } from '../../actions/exports/due-exports.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Job } from '../job.ts';

type Timing = { readonly every_seconds: number; readonly delay_seconds: number };

export function addDueExportsJob(stores: Stores, { every_seconds, delay_seconds }: Timing): Job {
  return { name: 'add-due-exports', every_seconds, run: (now) => addDueExports(stores, { now, delay_seconds }) };
}
