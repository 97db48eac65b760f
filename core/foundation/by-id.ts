/** Indexes records by id, in their given order. */
export function indexById<R extends { readonly id: string }>(records: Iterable<R>): Map<string, R> {
  return new Map(Array.from(records, (record) => [record.id, record]));
}
