/** Compares the identity files below a directory with the table, for the audit. The files may belong to a running worker. */
import type { IdentityFiles } from '../actions/operations/audit/identity-files.ts';
import { compareIdentityFiles, readIdentityFiles } from '../pipeline/identity/identity-files.ts';
import type { ClickHouseClient } from '../storage/clickhouse/clickhouse.ts';

/** Compares the files of partitions that belong to this installation. All other files are rebuilt by a worker. */
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
