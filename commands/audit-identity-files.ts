/** What the files of ids below a directory hold against the table, for the audit. They may be those of a worker that runs. */
import type { IdentityFiles } from '../actions/audit/identity-files.ts';
import { compareIdentityFiles, readIdentityFiles } from '../pipeline/identity/identity-files.ts';
import type { ClickHouseClient } from '../storage/clickhouse/clickhouse.ts';

/** Of the partitions whose files are of this installation: a worker makes the others again. */
export async function compareAllIdentityFiles(
  clickhouse: ClickHouseClient,
  dir: string,
  installation: string,
): Promise<IdentityFiles[]> {
  const compared: IdentityFiles[] = [];
  for (const answer of await readIdentityFiles(dir)) {
    const { partition } = answer;
    if (!answer.ok) compared.push({ partition, until: 0n, count: 0, missing: 0, fault: answer.why });
    else if (answer.files.installation === installation) {
      const { until } = answer.files;
      const { count, missing } = await compareIdentityFiles(clickhouse, dir, answer.files);
      compared.push({ partition, until, count, missing, fault: null });
    }
  }
  return compared;
}
