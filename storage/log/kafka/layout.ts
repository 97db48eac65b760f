/**
 * Table `log_layout`: one row with the number of partitions in use. It takes precedence over the partition count of the topic. When
 * partitions are added (grow.ts), the topic changes first, and a process that starts before the row changes uses the old number.
 */
import type { Database } from '../../foundation/stores.ts';

export type LogLayout = {
  /** Returns the number of partitions in use; the first call stores the given number. */
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
