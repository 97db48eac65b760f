/**
 * Values that belong to a chain of calls, also after an `await`, such as its caller. One AsyncLocalStorage holds all of them, because Node
 * copies the content of each storage to every promise.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

const storage = new AsyncLocalStorage<readonly unknown[]>();
const EMPTY: readonly unknown[] = [];
let count = 0;

export class CallValue<Value> {
  readonly #index = count++;

  get(): Value | undefined {
    return storage.getStore()?.[this.#index] as Value | undefined;
  }

  /** Runs `work`, and all that it starts, with this value. */
  run<Result>(value: Value | undefined, work: () => Result): Result {
    const values = [...(storage.getStore() ?? EMPTY)];
    values[this.#index] = value;
    return storage.run(values, work);
  }
}
