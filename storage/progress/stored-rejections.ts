/** Table `poison_events`: events that the stores reject, by their position in the log. */
import type { Database } from '../foundation/stores.ts';

export type StoredRejection = { readonly offset: number; readonly position: number; readonly reason: string };

/** Lists the rejections of events that a partition may still read. */
export async function listStoredRejections(
  database: Database,
  partition: number,
  offset: bigint,
): Promise<StoredRejection[]> {
  const { rows } = await database.raw(
    `select "offset", position, reason from poison_events where partition = ? and "offset" >= ?`,
    [partition, String(offset)],
  );
  return rows.map((row: { offset: string; position: number; reason: string }) => ({
    ...row,
    offset: Number(row.offset),
  }));
}

export async function addStoredRejection(
  database: Database,
  partition: number,
  { offset, position, reason }: StoredRejection,
): Promise<void> {
  await database.raw(
    `insert into poison_events (partition, "offset", position, reason) values (?, ?, ?, ?) on conflict do nothing`,
    [partition, offset, position, reason],
  );
}
