/**
 * A question to a ClickHouse that hangs is broken off (silence.ts), and one that takes its time is not: an audit rightly reads
 * for a minute. What writes is left alone: who tries again has to know that the statement ended, and waits for that
 * (storage/events/write-fence.ts).
 */
import type { ClickHouseClient, QueryParams } from '@clickhouse/client';
import { isHungUp } from '../failure.ts';
import { PROBE_TIMEOUT_MS, type ResponsivenessState, watchUntilAnswered } from '../unresponsive-server.ts';

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

/** Whatever it says, it lives. */
async function isAlive(ping: string): Promise<boolean> {
  try {
    const answer = await fetch(ping, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    await answer.body?.cancel();
    return true;
  } catch {
    return false;
  }
}
