/**
 * Aborts a query to a hung ClickHouse (storage/foundation/unresponsive-server.ts), but not a slow one: an audit may read for a minute.
 * Writes are never aborted: a retry must know that the statement has ended, and waits for that (storage/events/write-fence.ts).
 */
import type { ClickHouseClient, QueryParams } from '@clickhouse/client';
import { isHungUp } from '../foundation/failure.ts';
import { PROBE_TIMEOUT_MS, type ResponsivenessState, watchUntilAnswered } from '../foundation/unresponsive-server.ts';

export function watchForUnresponsiveClickHouse(client: ClickHouseClient, url: string): ClickHouseClient {
  const ping = new URL('/ping', new URL(url).origin).href;
  const query = client.query.bind(client);
  const found: ResponsivenessState = { is_silent: false };
  const watched = async (params: QueryParams) => {
    const silence = new AbortController();
    const signals = params.abort_signal ? [params.abort_signal, silence.signal] : [silence.signal];
    const forget = watchUntilAnswered(
      () => isAlive(ping),
      () => silence.abort(),
      found,
    );
    const abort_signal = AbortSignal.any(signals);
    try {
      const answer = await query({ ...params, abort_signal }).catch((error) => {
        if (abort_signal.aborted || !isHungUp(error)) throw error;
        return query({ ...params, abort_signal });
      });
      found.is_silent = false;
      return answer;
    } finally {
      forget();
    }
  };
  return Object.assign(client, { query: watched as typeof client.query });
}

/** Whether the server is alive, which any answer to the ping proves. */
async function isAlive(ping: string): Promise<boolean> {
  try {
    const answer = await fetch(ping, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    await answer.body?.cancel();
    return true;
  } catch {
    return false;
  }
}
