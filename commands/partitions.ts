/**
 * `npm run partitions -- --to N`
 *
 * Gives the event log more partitions: the configured log, or that of the data directory. It is refused while the log has records or
 * readers. After an interruption, run it again (docs/operations.md, "Partitions").
 */
import { pino } from 'pino';
import { readConfig } from '../config.ts';
import { exitWithUsage, parseArguments } from '../process/command-line.ts';
import { explain } from '../process/explain.ts';
import { makeLogger } from '../process/logger.ts';
import { migratePostgres } from '../sql/migrate.ts';
import { growLog } from '../storage/log/grow.ts';
import { openLog } from '../storage/log/open-log.ts';
import { connectPostgres } from '../storage/postgres/pool/postgres.ts';
import { reachPostgres } from './reach-postgres.ts';

/** The maximum of LOG_PARTITIONS in config.ts: one partition per shard. */
const PARTITIONS_MAX = 4096;

async function main(): Promise<void> {
  const to = parseCount();
  const config = readConfig();
  const { postgres_url, stop } = await reachPostgres(config);
  const postgres = connectPostgres(postgres_url);
  try {
    await migratePostgres(postgres);
    const log = await openLog(config, {
      postgres,
      logger: makeLogger(config, 'farthing-partitions', pino.destination(2)),
    });
    try {
      const from = log.partition_count;
      await growLog({ postgres, log }, to);
      process.stdout.write(`the event log has ${to} partitions, it had ${from}\n`);
    } finally {
      await log.close();
    }
  } finally {
    await postgres.destroy();
    await stop();
  }
}

function parseCount(): number {
  const { to } = parseArguments('partitions', { to: { type: 'string' } });
  const count = Number(to);
  if (!Number.isInteger(count) || count < 1 || count > PARTITIONS_MAX)
    exitWithUsage('partitions', `--to wants a whole number up to ${PARTITIONS_MAX}`);
  return count;
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`partitions: ${explain(error)}\n`);
    process.exit(1);
  },
);
