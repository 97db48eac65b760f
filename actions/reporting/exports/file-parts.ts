/** Splits a file's Postgres records into late records of earlier ranges and the records of its own range (docs/rules/exports.md). */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Microseconds } from '../../../core/foundation/time/instant.ts';
import type { SqlCondition } from '../../../storage/models/foundation/page.ts';
import { type ArrivalKind, buildFileCondition } from '../../../storage/models/reporting/export-cuts.ts';
import type { ExportInput } from './export-kind.ts';

type ExportedRange = {
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly only: SqlCondition | undefined;
};

/** Splits the records into parts. `id` is the column of the record's id in the statement. */
export function splitIntoFileParts(
  scope: Scope,
  { start_us, end_us, cut }: ExportInput,
  { kind, id }: { kind: ArrivalKind; id: string },
): ExportedRange[] {
  if (!cut) return [{ start_us, end_us, only: undefined }];
  const { tenant_id, environment_id } = scope;
  const only = (is_late: boolean) => buildFileCondition({ tenant_id, environment_id, kind, id, cut, is_late });
  return [
    // Only records made since the schedule have arrivals; a back-dated one may be older than the first range.
    { start_us: 0, end_us: start_us, only: only(true) },
    { start_us, end_us, only: only(false) },
  ];
}
