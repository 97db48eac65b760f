/** Reads the pages of an export one after another. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatUs } from '../../../core/foundation/time/instant.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { SqlCondition } from '../../../storage/models/foundation/page.ts';
import type { ArrivalKind } from '../../../storage/models/reporting/export-cuts.ts';
import type { ExportInput } from './export-kind.ts';
import { splitIntoFileParts } from './file-parts.ts';

const PAGE = 1_000;

type PageInput<Row> = { readonly after: Row | null; readonly limit: number; readonly database: Database };
type DatedPageInput<Row> = PageInput<Row> & {
  readonly from: string;
  readonly to: string;
  readonly only: SqlCondition | undefined;
};

/** Yields pages of all records. */
export async function* readPages<Row>(
  database: Database,
  signal: AbortSignal,
  list: (input: PageInput<Row>) => Promise<Row[]>,
): AsyncGenerator<readonly Row[]> {
  for (let after: Row | null = null; ; ) {
    signal.throwIfAborted();
    const page: Row[] = await list({ after, limit: PAGE, database });
    yield page;
    if (page.length < PAGE) return;
    after = page.at(-1)!;
  }
}

type DatedRecords<Row> = {
  readonly kind: ArrivalKind;
  /** Column of the id in the statement. */
  readonly id: string;
  list(input: DatedPageInput<Row>): Promise<Row[]>;
};

/** Yields pages of the records of the range; a scheduled file has the late records of earlier ranges first. */
export async function* readDatedPages<Row>(
  database: Database,
  scope: Scope,
  { input, kind, id, list }: DatedRecords<Row> & { readonly input: ExportInput },
): AsyncGenerator<readonly Row[]> {
  for (const { start_us, end_us, only } of splitIntoFileParts(scope, input, { kind, id })) {
    const range = { from: formatUs(start_us), to: formatUs(end_us), only };
    yield* readPages<Row>(database, input.signal, (page) => list({ ...page, ...range }));
  }
}
