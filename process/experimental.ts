/** Settings that no test of this repository runs against a real system. The log warns of them at every start. */
import type { Logger } from 'pino';
import type { Config } from '../config.ts';

export function warnOfExperimental({ CLICKHOUSE_CLUSTER }: Config, logger: Logger): void {
  if (CLICKHOUSE_CLUSTER === undefined) return;
  logger.warn(
    { setting: 'CLICKHOUSE_CLUSTER' },
    'CLICKHOUSE_CLUSTER is experimental: no test runs on a cluster of replicas (docs/operations.md, "A cluster of replicas")',
  );
}
