/** Traces statements as spans of the caller, if there is a tracer. The span of a stream ends with its first bytes. */
import type { ClickHouseClient } from '@clickhouse/client';
import { isTracing } from '../../tracing/spans.ts';
import { startStatement } from '../../tracing/statement.ts';

type TracedCallParams = { readonly query?: string; readonly table?: string };
type TracedCall = (params: TracedCallParams) => Promise<unknown>;

export function withStatementsTraced(client: ClickHouseClient): ClickHouseClient {
  if (!isTracing()) return client;
  for (const name of ['query', 'exec', 'command', 'insert'] as const) {
    const method = client[name].bind(client) as TracedCall;
    Object.assign(client, { [name]: (params: TracedCallParams) => traced(params, () => method(params)) });
  }
  return client;
}

async function traced(params: TracedCallParams, send: () => Promise<unknown>): Promise<unknown> {
  const span = startStatement('clickhouse', params.query ?? `insert into ${params.table}`);
  try {
    return await send();
  } catch (error) {
    span?.fail(error);
    throw error;
  } finally {
    span?.end();
  }
}
