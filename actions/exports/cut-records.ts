/** Records one after the other in stretches that are no longer than so many bytes, but for a record that is longer by itself. */
import type { ExportCell } from '../../core/export/column.ts';

type CellRows = readonly ExportCell[][];
type FileBounds = { readonly bytes_max: number; readonly head: number; of(cells: readonly ExportCell[]): number };

export class CutRecords {
  readonly #batches: AsyncIterator<CellRows>;
  readonly #bounds: FileBounds;
  #left: CellRows = [];
  /** Once a stretch was taken whole: whether it was the last. */
  isOver = false;

  constructor(batches: AsyncIterable<CellRows>, bounds: FileBounds) {
    this.#batches = batches[Symbol.asyncIterator]();
    this.#bounds = bounds;
  }

  /** Those behind the last stretch; the first may have none. */
  async *next(): AsyncGenerator<CellRows> {
    const { head, bytes_max, of } = this.#bounds;
    let room = bytes_max - head;
    let isFirst = true;
    for (;;) {
      const some = this.#left.length > 0 ? this.#left : await this.#more();
      if (some === null) return;
      let fit = 0;
      for (; fit < some.length; fit++) {
        const length = of(some[fit]!);
        if (length > room && !isFirst) break;
        room -= length;
        isFirst = false;
      }
      this.#left = some.slice(fit);
      if (fit > 0) yield some.slice(0, fit);
      if (fit < some.length) return;
    }
  }

  async #more(): Promise<CellRows | null> {
    const { done, value } = await this.#batches.next();
    this.isOver = done === true;
    return done ? null : value;
  }

  /** What is not asked for any more is not read. */
  async end(): Promise<void> {
    await this.#batches.return?.();
  }
}
