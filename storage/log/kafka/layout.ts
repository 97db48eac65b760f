/**
 * Table `log_layout`: one row, how many partitions of the topic are in use. It decides, and not the topic, whose number is
 * changed first when partitions are added (grow.ts): whoever starts between the two goes on with the old number.
 */
import type { Database } from '../../stores.ts';

export type LogLayout = {
  /** The number in use; the given one when it is asked for the first time. */
  claim(partitionCount: number): Promise<number>;
  read(): Promise<number>;
};

export function createLayoutReader(postgres: Database): LogLayout {
  const read = async () => {
    const { rows } = await postgres.raw(`select partition_count from log_layout`);
    return rows[0].partition_count;
  };
  return {
    read,
    claim: async (partitionCount) => {
      await postgres.raw(`insert into log_layout (partition_count) values (?) on conflict do nothing`, [
        partitionCount,
      ]);
      return read();
    },
  };
}

export async function updateLayout(transaction: Database, partitionCount: number): Promise<void> {
  await transaction.raw(`update log_layout set partition_count = ?`, [partitionCount]);
}
