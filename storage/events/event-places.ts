/** Where raw events stand in the log and when they came, without what they say. */
import type { Readable } from 'node:stream';
import type { Scope } from '../../core/scope.ts';
import { type ClickHouseClient, clickhouseFailure } from '../clickhouse.ts';

export type EventPlace = {
  readonly event_id: string;
  readonly received_at_us: number;
  readonly partition: number;
  readonly offset: number;
  readonly position: number;
};

export type PlacesWanted = Scope & {
  readonly event_name: string;
  /** Half-open, in microseconds. */
  readonly start_us: number;
  readonly end_us: number;
};

/** The events of a name and a time, as they were accepted; what fails on the way is thrown. */
export async function* eventPlaces(clickhouse: ClickHouseClient, wanted: PlacesWanted): AsyncGenerator<EventPlace> {
  const { tenant_id, environment_id, event_name, start_us, end_us } = wanted;
  try {
    const answer = await clickhouse.query({
      query: `select event_id, toUnixTimestamp64Micro(received_at), partition, offset, position from events
               where tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
                 and event_name = {event_name:String}
                 and timestamp >= fromUnixTimestamp64Micro({start_us:Int64}, 'UTC')
                 and timestamp < fromUnixTimestamp64Micro({end_us:Int64}, 'UTC')`,
      query_params: { tenant_id, environment_id, event_name, start_us, end_us },
      format: 'JSONCompactEachRow',
      clickhouse_settings: { output_format_json_quote_64bit_integers: 0, wait_end_of_query: 0 },
    });
    const stream = answer.stream() as unknown as Readable;
    for await (const rows of stream as AsyncIterable<{ text: string }[]>) {
      for (const row of rows) {
        const [event_id, received_at_us, partition, offset, position] = JSON.parse(row.text);
        yield { event_id, received_at_us, partition, offset, position };
      }
    }
  } catch (error) {
    throw clickhouseFailure('places of raw events', error);
  }
}
