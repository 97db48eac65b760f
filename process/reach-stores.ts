/** Checks first that the stores can be used; an error names the setting of the store that fails. */
import type { Logger } from 'pino';
import { isUnavailable } from '../storage/foundation/failure.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { pingPostgres } from '../storage/postgres/pool/postgres.ts';

/** Maximum wait for a store that starts at the same time. */
type Patience = { readonly within_ms: number; readonly logger: Logger };

/** Throws `configuration: DATABASE_URL: …` or `configuration: CLICKHOUSE_URL: …`, with the message of the store or the network. */
export async function reachStores(
  { postgres, clickhouse }: Pick<Stores, 'postgres' | 'clickhouse'>,
  patience: Patience,
): Promise<void> {
  await reachStore('DATABASE_URL', () => pingPostgres(postgres), patience);
  // A ping does not check the password.
  await reachStore('CLICKHOUSE_URL', () => clickhouse.command({ query: 'select 1 format Null' }), patience);
}

async function reachStore(setting: string, ping: () => Promise<unknown>, patience: Patience): Promise<void> {
  try {
    await retryUntilReachable(ping, patience);
  } catch (error) {
    throw new Error(`configuration: ${setting}: ${formatError(error)}`, { cause: error });
  }
}

/** Retries while the store is unavailable. */
export async function retryUntilReachable<Answer>(
  attempt: () => Promise<Answer>,
  { within_ms, logger }: Patience,
): Promise<Answer> {
  const until = performance.now() + within_ms;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isUnavailable(error) || performance.now() > until) throw error;
      logger.info({ err: error }, 'a store is not there yet');
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

/**
 * Formats an error as one line. If a name has several addresses, each one failed, and the first error stands for all. knex puts the
 * statement before the message.
 */
function formatError(error: unknown): string {
  const { message, errors } = error as Error & { errors?: Error[] };
  const [line = ''] = (message || errors?.[0]?.message || String(error)).split('\n');
  return line.replace(/^select 1 - /, '').slice(0, 300);
}
