/** Splits records into sections of limited size; a record that is larger than the limit is a section of its own. */
import type { ExportCell } from '../../../core/platform/export/column.ts';

type CellRows = readonly ExportCell[][];
type FileBounds = { readonly bytes_max: number; readonly head: number; of(cells: readonly ExportCell[]): number };

export class CutRecords {
  readonly #batches: AsyncIterator<CellRows>;
  readonly #bounds: FileBounds;
  #left: CellRows = [];
  /** Whether the section that was just read completely was the last one. */
  isOver = false;

  constructor(batches: AsyncIterable<CellRows>, bounds: FileBounds) {
    this.#batches = batches[Symbol.asyncIterator]();
    this.#bounds = bounds;
  }

  /** Yields the next section; the first one may be empty. */
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

  /** Stops the reading of further records. */
  async end(): Promise<void> {
    await this.#batches.return?.();
  }
}
